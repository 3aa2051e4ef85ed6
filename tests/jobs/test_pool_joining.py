"""Workers that are ready when a job of a pool has been divided already: they take part in it as far as they can."""

from __future__ import annotations

import math
from typing import Any

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Unreachable
from infosvc.wire.records import Kind, Producer
from jobs.application.coordinator import Container, End, Knowledge, Seat, Then
from jobs.application.exits import Exit
from jobs.division.decision import CapabilityReadings, Reading
from jobs.itemwork.snapshot import FALLBACK, know_later
from jobs.itemwork.summary import Course, summarise
from jobs.kinds.pool.lives import Lives
from jobs.kinds.pool.pooled_job import PooledJob
from jobs.reports.report import Weights
from tests.jobs.stored import SETTINGS
from tests.jobs.test_pool_workers import NONE, A, B, Scene


@pytest.fixture
def scene(client: InfoClient) -> Scene:
    """What nodes can do is asked of the real service."""
    client.put_producer(Producer("weight", cmd="", time_max=3600, kind=Kind.PROGRAM))
    made = Scene()
    made.client = client
    return made


def look(scene: Scene) -> None:
    """One look at the jobs, and all that comes of it."""
    lives = Lives(scene.workers, Knowledge(NONE, NONE), lambda _: None, 1, "photos")
    lives.look()
    lives.wait()


def course(job: PooledJob) -> Course:
    """How the work of a job went."""
    work: Any = job._work
    return Course("", work._work.totals(), (), (), 1, 1.0, 0.0, 0, 0, values=work._values)


def test_a_worker_that_is_ready_later_takes_what_waits_for_others_and_stands_in_status_and_report(
    scene: Scene,
) -> None:
    scene.client.put_value("weight", B, "2")
    job = scene.add(1, [A], 40)
    for node in (A, B):
        assert ("lease" in scene.take(node)) == (node == A)

    look(scene)

    while not job.is_done:
        scene.now += 0.1
        for node in (A, B):
            if "lease" in scene.take(node):
                scene.commit(node, *scene.lease(node))
    told = {one.node_name: (one.planned, one.done) for one in job.status().nodes}
    assert (told[A][0], told[B][0]) == (40, 0)
    assert told[A][1] + told[B][1] == 40
    assert told[B][1] > 0
    assert job._work is not None
    report = summarise(SETTINGS, job._work._decision, course(job), Weights(""))
    assert [(one.node_name, one.capability, one.planned_items, one.items) for one in report.nodes] == [
        (A, 1.0, 40, told[A][1]),
        (B, 2.0, 0, told[B][1]),
    ]


def test_one_that_has_joined_may_be_lost_and_come_again(scene: Scene) -> None:
    scene.client.put_value("weight", B, "1")
    job = scene.add(1, [A], 40)
    for node in (A, B):
        scene.take(node)
    look(scene)
    scene.take(B)

    container = Container(Seat("worker", 0, B), f"{B}-1", f"{B}:8042")
    assert scene.workers.on_end(container, End(Exit.PREEMPTED, -102)) is Then.AGAIN
    scene.start(B, 2)

    assert "lease" in scene.take(B, number=2)
    assert job.fault is None


def test_one_that_can_do_nothing_gets_nothing_and_is_asked_about_once(scene: Scene) -> None:
    scene.client.put_value("weight", B, "0")
    job = scene.add(1, [A], 40)
    for node in (A, B):
        scene.take(node)
    assert job.find_new([A, B]) == [B]

    look(scene)

    assert "wait" in scene.take(B)
    assert job.find_new([A, B]) == []


def test_one_of_which_nobody_says_what_it_can_do_is_asked_about_again_later(scene: Scene) -> None:
    job = scene.add(1, [A], 40)
    for node in (A, B):
        scene.take(node)

    look(scene)

    assert "wait" in scene.take(B)
    assert job.find_new([A, B]) == [B]
    asked_again = job.admits_at
    scene.client.put_value("weight", B, "1")
    look(scene)
    assert "wait" in scene.take(B), "not at once"
    assert job.admits_at == asked_again
    job.admits_at = 0.0
    look(scene)
    assert "lease" in scene.take(B)


def test_where_the_service_is_away_only_the_first_node_is_asked_about(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job, asked = scene.add(1, ["gamma"], 40), list[str]()
    for node in (A, B):
        scene.take(node)

    def admit(node: str) -> bool:
        asked.append(node)
        raise Unreachable("the service does not answer")

    monkeypatch.setattr(job, "admit", admit)

    look(scene)

    assert asked == [A]
    assert "do not take part yet: the service does not answer" in capsys.readouterr().out
    assert 0 < job.admits_at < math.inf, "it is asked again"


def test_a_job_that_is_divided_anew_meanwhile_has_its_new_nodes_alone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = scene.add(1, [A], 40)
    work: Any = job._work

    def admit_late(_: str) -> bool:
        job.take_up(scene.attempts["1"], NONE)
        return True

    monkeypatch.setattr(work, "admit", admit_late)

    assert not job.admit(B)
    assert job.nodes == {A}


def test_nodes_are_alike_where_a_division_took_them_for_alike() -> None:
    known = CapabilityReadings("", FALLBACK, "", "", {A: Reading(1.0, 0.0, FALLBACK)})

    assert know_later(NONE, SETTINGS, known, [B]) == {B: 1.0}
