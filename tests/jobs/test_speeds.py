"""What the submitter records of the speeds of programs, and what is learned of them, at a real service."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, InvalidInput
from infosvc.wire.records import Kind, Producer, Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState
from jobs.kinds.task.reported import Reports
from jobs.kinds.task.settings import PROGRAM_SECONDS, STEPS_PER_SECOND
from jobs.submitter.speeds import Speeds, measured, read_recorded
from tests.cluster.site import until

NODES = ("n1", "n2", "n3")


@pytest.fixture
def submitter(client: InfoClient) -> InfoClient:
    """With the rights of a submitter, at a service that knows three nodes."""
    for node in NODES:
        client.put_node(node, "127.0.0.1:9")
    return InfoClient(client.url, client.create_token("submitter", Role.SUBMITTER)[1])


@pytest.fixture
def speeds(submitter: InfoClient) -> Iterator[Speeds]:
    """Which say nothing, as nothing goes wrong."""
    said: list[str] = []
    with closing(Speeds(submitter, said.append)) as made:
        yield made
    assert said == []


def ran(program: str | None) -> Task:
    return Task("task_0f1e2d3c4b5a6978", "maria", "a", TaskSpec(("a",), program=program), TaskState.RUNNING, 1.0, 1.0)


def numbers(client: InfoClient, name: str) -> dict[str, float]:
    return {one.node_name: one.number() for one in client.data(name)}


def good(client: InfoClient, name: str) -> float | None:
    """What n1 has there; None if it is no number."""
    with suppress(InvalidInput):
        return numbers(client, name).get("n1")
    return None


def test_steps_count_before_seconds() -> None:
    assert measured({STEPS_PER_SECOND: 12.5, PROGRAM_SECONDS: 4.0}) == ("steps_per_second", 12.5)
    assert measured({PROGRAM_SECONDS: 4.0}) == ("runs_per_second", 0.25)
    assert measured({PROGRAM_SECONDS: 0}) is None
    assert measured({STEPS_PER_SECOND: "fast"}) is None


def test_a_task_that_succeeded_leaves_its_speed_and_what_is_learned_is_on_every_node(
    submitter: InfoClient, speeds: Speeds
) -> None:
    speeds.start()
    speeds.note(ran("net"), "n1", {STEPS_PER_SECOND: 8.0})
    speeds.note(ran("net"), "n2", {STEPS_PER_SECOND: 2.0})
    until(lambda: "training_speed:net" in [one.data_name for one in submitter.producers()])
    until(lambda: numbers(submitter, "training_speed:net").get("n2") == 0.25)  # its thread writes, when it has paused
    until(lambda: numbers(submitter, "training_speed:net").get("n3", 1.0) < 1.0)  # one node after the other

    assert numbers(submitter, "steps_per_second:net") == {"n1": 8.0, "n2": 2.0}
    learned = numbers(submitter, "training_speed:net")
    assert learned["n1"] == 1.0
    assert 0.25 < learned["n3"] < 1.0, "nothing ran there, so it is a usual node"


def threads() -> set[threading.Thread]:
    """Those that write what is learned; a service has others, now and then one more."""
    return {one for one in threading.enumerate() if one.name == "speeds"}


def test_its_thread_ends_with_its_owner(speeds: Speeds) -> None:
    before = threads()
    speeds.start()
    assert threads() - before

    speeds.close()

    until(lambda: not threads() - before)


def test_whether_there_is_room_is_asked_once_for_each_program(
    submitter: InfoClient, speeds: Speeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    producers = submitter.producers

    def counted() -> list[Producer]:
        asked.append("producers")
        return producers()

    monkeypatch.setattr(submitter, "producers", counted)
    for _ in range(3):
        speeds.note(ran("net"), "n1", {STEPS_PER_SECOND: 8.0})

    assert len(asked) == 1


def test_a_later_run_moves_the_average(submitter: InfoClient, speeds: Speeds) -> None:
    for speed in (1.0, 10.0):
        speeds.note(ran("net"), "n1", {PROGRAM_SECONDS: 1 / speed})

    assert numbers(submitter, "runs_per_second:net")["n1"] == pytest.approx(10**0.3, rel=1e-4)


def test_a_value_that_is_no_number_is_written_over_and_holds_up_no_other(
    client: InfoClient, submitter: InfoClient, speeds: Speeds
) -> None:
    for program in ("a", "b"):
        speeds.note(ran(program), "n1", {STEPS_PER_SECOND: 8.0})
    speeds.write()
    assert good(submitter, "training_speed:b") == 1.0
    client.put_value("training_speed:a", "n1", "nonsense")
    client.put_value("training_speed:b", "n1", "0.2")
    client.put_value("steps_per_second:a", "n1", "nonsense")

    speeds.note(ran("a"), "n1", {STEPS_PER_SECOND: 4.0})

    assert numbers(submitter, "steps_per_second:a")["n1"] == 4.0
    speeds.write()
    assert [good(submitter, f"training_speed:{program}") for program in ("a", "b")] == [1.0, 1.0]


def test_a_speed_that_is_stale_teaches_nothing(client: InfoClient, submitter: InfoClient) -> None:
    old = Producer("steps_per_second:old", "", 60.0, Kind.PROGRAM, ttl=600)
    client.put_producer(old)
    client.put_value("steps_per_second:old", "n1", 5)
    assert read_recorded(submitter) == {("n1", "old"): 5.0}
    client.put_producer(replace(old, ttl=0.001))

    assert read_recorded(submitter) == {}


def test_there_is_room_for_so_many_programs(
    submitter: InfoClient, speeds: Speeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.submitter.speeds.MOST_PROGRAMS", 1)
    said: list[str] = []
    small = Speeds(submitter, said.append)
    for program in ("a", "b", "b", "a"):
        small.note(ran(program), "n1", {STEPS_PER_SECOND: 8.0})

    assert {program for _, program in read_recorded(submitter)} == {"a"}
    assert said == ["speeds of 1 programs are known, and of no more, such as b, are recorded"]


def test_a_program_that_reports_steps_is_judged_by_these_alone(submitter: InfoClient, speeds: Speeds) -> None:
    speeds.note(ran("net"), "n1", {PROGRAM_SECONDS: 4.0})
    speeds.note(ran("net"), "n2", {STEPS_PER_SECOND: 7.0})
    speeds.note(ran("other"), "n1", {PROGRAM_SECONDS: 2.0})

    assert read_recorded(submitter) == {("n2", "net"): 7.0, ("n1", "other"): 0.5}


def test_without_a_program_or_on_a_node_that_is_not_enrolled_nothing_is_recorded(
    submitter: InfoClient, speeds: Speeds
) -> None:
    speeds.note(ran(None), "n1", {PROGRAM_SECONDS: 4.0})
    speeds.note(ran("net"), "elsewhere", {PROGRAM_SECONDS: 4.0})

    assert read_recorded(submitter) == {}


def test_a_submitter_registers_new_names_that_no_node_runs_and_nothing_else(
    client: InfoClient, submitter: InfoClient
) -> None:
    client.put_producer(Producer("rack", "", 60.0, Kind.PROGRAM))

    submitter.put_producer(Producer("steps_per_second:a", "", 60.0, Kind.PROGRAM), new=True)
    for producer, new in (
        (Producer("evil", "scripts/evil.sh", 5.0), True),
        (Producer("rack", "", 60.0, Kind.PROGRAM, ttl=1), False),
    ):
        with pytest.raises(Forbidden, match="kind program alone"):
            submitter.put_producer(producer, new=new)


def test_the_speed_of_a_program_is_from_its_first_step_to_its_highest() -> None:
    moments = iter((10.0, 20.0, 25.0, 30.0))
    reports = Reports(lambda _: None, lambda: next(moments))
    assert reports.steps_per_second is None
    reports.hear(b"nodewise: loss=1 step=100\n")
    assert reports.steps_per_second is None
    reports.hear(b"nodewise: loss=1 step=150\nnodewise: loss=1 step=120\nnodewise: loss=1 step=200\n")

    assert reports.steps_per_second == pytest.approx(5.0)


def test_the_command_shows_what_was_seen_and_how_far_the_fit_is_off(
    client: InfoClient, speeds: Speeds, submitter: InfoClient, tmp_path: Path
) -> None:
    for node, factor in (("n1", 1.0), ("n2", 2.0)):
        speeds.note(ran("a"), node, {STEPS_PER_SECOND: 3.0 * factor})
        speeds.note(ran("b"), node, {STEPS_PER_SECOND: 40.0 * factor})

    token = tmp_path / "reader.token"
    token.write_text(client.create_token("reader", Role.READER)[1])
    words = ["--url", submitter.url, "--token-file", str(token)]
    done = subprocess.run(
        [sys.executable, "-m", "nodewise", "task", "speeds", "b", "--json", *words], capture_output=True, check=True
    )
    said = json.loads(done.stdout)
    assert {row["node_name"]: row["seen"] for row in said["speeds"]} == {"n1": 40.0, "n2": 80.0, "n3": None}
    assert said["error_ratio"] < 0.2
