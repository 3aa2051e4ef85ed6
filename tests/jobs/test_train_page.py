"""What a training run tells the dashboard: bounded whatever its length and size, and known to a later attempt."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from flask.testing import FlaskClient

from hadoop.errors import HadoopError
from jobs.application.coordinator import End
from jobs.application.exits import Exit
from jobs.application.job_record import JobRecord
from jobs.application.journal import Record
from jobs.application.page import page
from jobs.application.status import JobStatus
from jobs.kinds.train.loss_curve import MOST_POINTS, LossCurve
from jobs.kinds.train.page_section import KEEP_SECONDS, LOSS, MOST_KEPT, MOST_NODES
from learning.lead.calls import Doing, Done, Share
from tests.jobs.played import JOB, Hadoop
from tests.jobs.test_train_coordinator import STEPS, A, B, Scene

MOST_BYTES = 200_000


@pytest.fixture
def scene() -> Scene:
    """A run on two nodes."""
    return Scene()


def training(scene: Scene) -> dict[str, Any]:
    """The object, as it travels."""
    scene.now += 2.0
    section = scene.train.progress().section
    assert section is not None
    found: dict[str, Any] = json.loads(json.dumps(section["training"]))
    return found


def tell(scene: Scene, steps: int, loss: float) -> None:
    """Both members have done so many steps, and know the loss of the last."""
    for process in (A, B):
        scene.say(process, Doing.COMPUTES, Done(steps, 10**6, 32 * steps, float(steps), 0.0, loss))


@pytest.mark.parametrize("every", [1, 7, 100])
def test_a_loss_curve_stays_small_and_is_equally_dense_everywhere(every: int) -> None:
    curve = LossCurve()
    for step in range(every, 20_000 * every + 1, every):
        curve.add(step, 1 / step)
    points = curve.points()
    apart = [later - step for (step, _), (later, _) in pairwise(points)]

    assert MOST_POINTS / 4 < len(points) <= MOST_POINTS + 1
    assert max(apart) <= 4 * sorted(apart)[len(apart) // 2]
    assert points[-1] == (20_000 * every, float(f"{1 / (20_000 * every):.6g}"))


def test_a_run_tells_its_members_work_loss_and_shares(scene: Scene) -> None:
    scene.compute(1)
    for process, samples in ((A, 90), (B, 38)):
        done = Done(10, STEPS, 10 * samples, 2.0, 0.5, 0.75, share=Share(samples, 128, 9, gain=1.5))
        scene.say(process, Doing.COMPUTES, done)
    scene.tick()
    told = training(scene)

    assert (told["steps"], told["steps_in_all"]) == (10, STEPS)
    assert told["loss"] == [[10, 0.75]], "the first step was told before a moment had passed"
    work = {"count": 1, "samples": 900, "compute_seconds": 2.0, "wait_seconds": 0.5}
    assert told["nodes"][0] == {"node_name": "a", **work}
    (change,) = told["shares"]
    assert (change["step"], change["batch"], change["gain"], change["others"]) == (9, 128, 1.5, None)
    assert change["shares"] == {"a": 90, "b": 38}
    (generation,) = told["generations"]
    assert (generation["nodes"], generation["others"], generation["ended"]) == (["a", "b"], 0, "")


def test_a_loss_ends_a_generation_and_both_say_why(scene: Scene) -> None:
    _, lost = scene.compute(40)
    scene.now = 7.0
    scene.train.on_end(lost, End(Exit.KILLED, 137))
    scene.now = 7.5
    scene.say(A, Doing.WAITS, Done(40, STEPS))
    told = training(scene)

    assert [one["ended"] for one in told["generations"]] == ["lost b", ""]
    (loss,) = told["losses"]
    assert (loss["node"], loss["cost_seconds"], told["cost_seconds"], told["losses_in_all"]) == ("b", 0.5, 0.5, 1)


def test_the_report_has_the_loss_curve_and_why_the_last_generation_ended(scene: Scene) -> None:
    scene.compute(40)
    scene.tick()
    scene.tell(STEPS, Doing.DONE)
    scene.tick()
    scene.train.finish()

    assert scene.report()["loss_curve"] == [[40, 0.25], [STEPS, 0.25]]
    assert [one["ended"] for one in scene.report()["generations"]] == [f"all {STEPS} steps are done"]


def test_a_run_that_went_back_forgets_the_loss_of_what_it_does_again(scene: Scene) -> None:
    scene.compute(1)
    for steps in (10, 20, 30, 12):
        tell(scene, steps, 1.0 / steps)
        scene.tick()

    assert [step for step, _ in training(scene)["loss"]] == [10, 12]


def kept(scene: Scene) -> list[Any]:
    """The journal's records of the loss."""
    return [record.body["points"] for record in scene.journal if record.kind == LOSS]


def test_a_later_attempt_knows_the_loss_as_far_as_the_journal_has_it_which_is_written_now_and_then(
    scene: Scene,
) -> None:
    scene.compute(1)
    for steps in range(2, 402):
        tell(scene, steps, 1.0 / steps)
        scene.tick()
    before = training(scene)["loss"]
    scene.begin()
    after = training(scene)["loss"]

    assert len(kept(scene)) == int(100 / KEEP_SECONDS)
    assert all(len(points) <= MOST_KEPT for points in kept(scene))
    assert len(before) > 200 > len(after) > 20
    assert after[-1] == kept(scene)[-1][-1]
    assert set(map(tuple, after)) <= set(map(tuple, before))


def test_a_journal_that_takes_no_more_does_not_end_the_run(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.compute(1)
    append = scene.append

    def refuse(record: Record) -> None:
        if record.kind == LOSS:
            raise HadoopError("another attempt leads")
        append(record)

    monkeypatch.setattr(scene, "append", refuse)
    tell(scene, 2, 0.5)
    scene.tick(KEEP_SECONDS)

    assert kept(scene) == []
    assert training(scene)["loss"][-1] == [2, 0.5]


def test_of_256_members_the_largest_are_told_and_the_others_together() -> None:
    scene = Scene(members="2:256")
    names = [f"container_1_0001_01_{number:06}" for number in range(256)]
    for number, name in enumerate(names):
        scene.start(name, f"worker{number:03}")
        scene.say(name, Doing.WAITS, Done(), number=0)
    scene.tick()
    for change in range(40):
        for number, name in enumerate(names):
            share = Share(number + 1 + change % 2, 256 * 257 // 2 + 256 * (change % 2), 10 * change)
            done = Done(10 * change + 1, STEPS, 100 * number, 1.0 * change, 0.5, 0.5, share=share)
            scene.say(name, Doing.COMPUTES, done)
        scene.tick()
    told = training(scene)

    assert [one["node_name"] for one in told["nodes"]] == [f"worker{number}" for number in range(244, 256)] + [""]
    assert told["nodes"][-1]["count"] == 244
    assert sum(one["samples"] for one in told["nodes"]) == 100 * 255 * 256 // 2
    assert len(told["shares"]) == 40
    last = told["shares"][-1]
    assert len(last["shares"]) == MOST_NODES and last["others"]["count"] == 244
    assert sum(last["shares"].values()) + last["others"]["samples"] == last["batch"]
    assert told["generations"][0]["others"] == 244
    assert len(json.dumps(told)) < MOST_BYTES


def test_people_are_shown_words_and_numbers_alone(make_status: Callable[[], JobStatus]) -> None:
    status = make_status()

    assert status.section_lines() == ["Program: python"]
    assert "python" in page(status) and "curve" not in page(status)


@pytest.fixture
def make_status() -> Callable[[], JobStatus]:
    """make_status(): of a run that succeeded."""

    def make() -> JobStatus:
        section = {"Program": "python", "training": {"loss": [[1, 0.5]], "curve": 1}}
        return JobStatus(*(JOB, "succeeded", 1, 1, 1, 0, 2.0, None), (), kind="train", unit="steps", section=section)

    return make


def test_a_run_that_has_ended_is_drawn_from_its_record(
    known: FlaskClient, hadoop: Hadoop, make_status: Callable[[], JobStatus]
) -> None:
    hadoop.app |= {"state": "FINISHED", "finalStatus": "SUCCEEDED", "applicationTags": "kind=train,training=ca86"}
    hadoop.stored[f"/user/me/.nodewise/records/{JOB}.json"] = JobRecord(make_status(), "it ended").to_bytes()

    job = known.get(f"/api/v1/jobs/{JOB}").get_json()

    assert job["record"]["section"]["training"]["loss"] == [[1, 0.5]]
