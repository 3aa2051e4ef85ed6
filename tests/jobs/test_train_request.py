"""What a training run may ask for, what is refused before it is submitted, and how it is told what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from jobs.application.package import NO_PYTHON
from jobs.application.submit import Order
from jobs.commands.training import train_stop
from jobs.commands.training.train_resume import changed
from jobs.commands.training.train_stop import ask
from jobs.commands.training.train_stop import check as check_stop
from jobs.errors import JobError
from jobs.kinds.train.news import History, by_node, last_loss, sentence
from jobs.kinds.train.request import TrainRequest, check, order
from jobs.kinds.train.settings import TrainSettings
from learning.lead.calls import Done
from locality.training.generation_events import (
    Began,
    Checkpointed,
    EndAnnounced,
    Event,
    Finished,
    Generation,
    Lost,
    StopAsked,
)
from tests.in_process import nodewise
from tests.jobs.following import JOB, RUNNING, SUCCEEDED

SETTINGS = TrainSettings(argv=["python", "train.py"], output="hdfs:///out/run1", members="2")


class Cluster:
    """Two nodes, and what YARN knows."""

    def __init__(self, known: Sequence[Application] = ()) -> None:
        self.yarn = self
        self.known = known

    def path(self, name: str) -> str:
        return name.removeprefix("hdfs://")

    def check(self, made: Order) -> list[str]:
        return ["a", "b"]

    def tagged(self, tag: str) -> list[Application]:
        return [one for one in self.known if tag in one.tags]


def submitter(*known: Application) -> Any:
    return Cluster(known)


@pytest.mark.parametrize(("members", "bounds"), [("2", (2, 2)), ("2:4", (2, 4)), ("1:256", (1, 256)), ("03", (3, 3))])
def test_members_are_a_number_or_the_fewest_and_the_most(members: str, bounds: tuple[int, int]) -> None:
    settings = replace(SETTINGS, members=members)

    assert (settings.least, settings.most) == bounds


@pytest.mark.parametrize("members", ["4:2", "x", "0", "0:2", "", "2:", ":2", "2:3:4", "257", "-1", "2.5", "²"])
def test_other_members_are_refused_before_anything_else_is_looked_at(members: str) -> None:
    done = nodewise("train", "submit", "--output", "/out", "--members", members, "--", "python")

    assert done.returncode == 1
    assert f"--members {members} is not a number of members: give one from 1 to 256" in done.stderr.replace("\n", " ")


@pytest.mark.parametrize("sync", ["sometimes", "local:0", "local:1025", ""])
def test_another_way_to_average_is_refused(sync: str) -> None:
    done = nodewise("train", "submit", "--output", "/out", "--sync", sync, "--", "python")

    assert done.returncode == 1
    said = done.stderr.replace("\n", " ")
    assert f"--sync: members cannot average by '{sync}': write every, auto or local:H, H from 1 to 1024" in said


def test_a_run_without_a_folder_for_its_checkpoints_is_refused_in_one_sentence() -> None:
    done = nodewise("train", "submit", "--", "python")

    assert done.returncode == 1
    said = done.stderr.replace("\n", " ")
    assert "the run needs a folder in HDFS for its checkpoints: name one: --output hdfs:///out/run1" in said


def test_a_run_without_an_environment_is_refused_where_nodes_have_no_python() -> None:
    bare = replace(SETTINGS, worker_python=NO_PYTHON)

    with pytest.raises(JobError, match="workers have no Python of their own: name an environment with --env NAME@VERS"):
        check(submitter(), TrainRequest(bare))
    check(submitter(), TrainRequest(replace(bare, parts={"/opt/env": "/part.sqfs"})))


def test_a_run_of_more_members_than_nodes_is_refused() -> None:
    with pytest.raises(JobError, match="3 members need 3 nodes, and only 2 accept work: ask for fewer --members"):
        check(submitter(), TrainRequest(replace(SETTINGS, members="3:4")))
    check(submitter(), TrainRequest(replace(SETTINGS, members="2:4")))


def test_an_output_belongs_to_one_run_at_a_time() -> None:
    tags = frozenset(order(submitter(), TrainRequest(SETTINGS)).tags)
    running, ended = replace(RUNNING, tags=tags), replace(SUCCEEDED, tags=tags)

    check(submitter(ended), TrainRequest(SETTINGS))
    check(submitter(running), TrainRequest(replace(SETTINGS, output="hdfs:///out/run2")))
    with pytest.raises(JobError, match=f"{RUNNING.application_id} trains with the output /out/run1 now: name another"):
        check(submitter(ended, running), TrainRequest(SETTINGS))


def test_a_job_is_named_as_its_script_which_travels_with_it(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    made = order(submitter(), TrainRequest(replace(SETTINGS, files=[str(script)])))

    assert (made.kind, made.name, made.uploads) == ("train", "nodewise train train.py", {"train.py": script})
    assert (made.settings["output"], made.settings["files"]) == ("/out/run1", ["train.py"])
    assert not made.needs_service
    assert order(submitter(), TrainRequest(replace(SETTINGS, capability="perf_cpu"))).needs_service


def test_a_run_that_goes_on_has_the_files_of_the_one_before(tmp_path: Path) -> None:
    before = replace(SETTINGS, argv=["./mine", "5"], files=["mine"])
    again = TrainRequest(before, files={"mine": tmp_path / "mine"})
    check(submitter(), again)
    made = order(submitter(), again)

    assert (made.settings["argv"], made.uploads) == (["./mine", "5"], {"mine": tmp_path / "mine"})
    assert made.settings["files"] == ["mine"]


def test_only_what_is_given_changes_of_a_run_that_goes_on() -> None:
    before = replace(SETTINGS, memory_mb=512, vcores=3, files=["train.py"])
    given = {"members": "4:8", "memory_mb": 2048, "vcores": 1, "worker_python": "/python"}

    now = changed(before, given, {"members", "memory_mb", "queue"}, argv=before.argv)

    assert now == replace(before, members="4:8", memory_mb=2048)


class Stopped(Cluster):
    """Has one job; its owner is whoever has its folder."""

    user = "me"

    def __init__(self, application: Application, *, is_own: bool = True) -> None:
        super().__init__()
        self.filesystem = self
        self.found, self.is_own = application, is_own

    def application(self, job_id: str) -> Application:
        return self.found

    def staging(self, job_id: str) -> str:
        return f"/user/me/.nodewise/{job_id}"

    def exists(self, name: str) -> bool:
        return self.is_own and name == f"{self.staging(JOB)}/job.json"

    def read(self, name: str) -> bytes:
        raise HadoopError("HDFS is away")


TRAINS = replace(RUNNING, tags=frozenset({"kind=train"}))


@pytest.mark.parametrize(
    ("stopped", "said"),
    [
        (Stopped(RUNNING), f"{JOB} is not a training run: nodewise job kill {JOB}"),
        (Stopped(replace(SUCCEEDED, tags=TRAINS.tags)), f"{JOB} has ended already: succeeded"),
        (Stopped(TRAINS, is_own=False), f"{JOB} is not a run of me: its files are not in /user/me/.nodewise/{JOB}"),
    ],
    ids=["another kind", "ended", "another's"],
)
def test_what_cannot_be_stopped_is_refused(stopped: Any, said: str) -> None:
    with pytest.raises(JobError, match=said):
        check_stop(stopped, JOB)


def test_an_application_master_that_is_away_is_asked_again_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(train_stop, "PATIENCE_SECONDS", 0.0)
    away: Any = Stopped(TRAINS)
    check_stop(away, JOB)
    with pytest.raises(JobError, match=f"{JOB} cannot be told to stop: HDFS is away: end it: nodewise train kill"):
        ask(away, JOB, pauses.append)

    monkeypatch.setattr(train_stop, "PATIENCE_SECONDS", 60.0)

    def end(seconds: float) -> None:
        pauses.append(seconds)
        away.found = SUCCEEDED

    ask(away, JOB, end)
    assert pauses == [train_stop.AGAIN_SECONDS]


FIRST, SECOND = Generation(1, 1, ("c1", "c2"), 0, True, (), ""), Generation(1, 2, ("c1",), 40, False, (), "")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (FIRST, "generation 1 computes from step 0 on: c1, c2"),
        (
            Generation(1, 3, ("c1",), 1000, True, (), ""),
            "generation 3 computes from step 1,000 on, from a checkpoint: c1",
        ),
        (EndAnnounced(1, 1, True, "lost c2"), "generation 1 ends: lost c2"),
        (Lost(1, "c2", "killed"), "c2 takes part no more: killed"),
        (Checkpointed(1, 40), "the state after 40 steps is stored"),
        (Finished(1, 64), "all 64 steps are done"),
        (Finished(1, 40, is_stopped=True), "the run is stopped after 40 steps"),
        (StopAsked(1), "the run stops after the step that is computed"),
        (Began(1), ""),
        (Began(2), "attempt 2 leads the run"),
    ],
)
def test_each_event_is_a_sentence_or_nothing(event: Event, said: str) -> None:
    assert sentence(event) == said


def test_history_tells_nodes_and_what_a_loss_has_cost() -> None:
    history = History({"c1": "alpha", "c2": "beta"})
    for at, event in ((1.0, FIRST), (5.0, Lost(1, "c2", "killed")), (5.0, Lost(1, "c9", "never in")), (6.25, SECOND)):
        history.note(at, event)

    assert history.news(2) == [
        "5 s: c9 takes part no more: never in",
        "6 s: generation 2 computes from step 40 on: alpha",
    ]
    assert history.last_members == {"c1"}
    assert [one["nodes"] for one in history.report()["generations"]] == [["alpha", "beta"], ["alpha"]]
    assert history.report()["losses"] == [{"node": "beta", "at_seconds": 5.0, "why": "killed", "cost_seconds": 1.25}]


def test_two_members_of_one_node_count_together() -> None:
    work = {"c1": Done(40, 64, 100, 2.0, 1.0, 0.5), "c2": Done(64, 64, 60, 1.0, 0.5, 0.25), "c3": Done()}

    reads = {"reads": 0, "local_reads": 0}
    assert by_node(work, {"c1": "alpha", "c2": "alpha"}) == {
        "alpha": {"samples": 160, "compute_seconds": 3.0, "wait_seconds": 1.5, "loss": 0.25, **reads},
        "c3": {"samples": 0, "compute_seconds": 0.0, "wait_seconds": 0.0, "loss": None, **reads},
    }
    assert last_loss(work.values()) == 0.25
    assert last_loss([]) is None


def test_a_file_with_a_name_that_nodewise_needs_is_refused(tmp_path: Path) -> None:
    taken = tmp_path / "train.json"
    taken.touch()

    with pytest.raises(JobError, match=r"a file cannot have the name train.json, which is nodewise's own: rename it"):
        order(submitter(), TrainRequest(replace(SETTINGS, files=[str(taken)])))
