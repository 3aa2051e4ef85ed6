"""The application master before it has a plan, and after the job: without HDFS and without YARN."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from hadoop.client.yarn import Launch
from hadoop.errors import GivenUp, HadoopError
from hadoop.rest.pages import Pages
from jobs.application import attempts, master
from jobs.application.attempts import BEGAN
from jobs.application.coordinator import Attempt, Knowledge, Outcome, Progress, Role, Runner, Seat
from jobs.application.journal import Journal, Record
from jobs.application.listener import Listener
from jobs.application.master import Application, as_ordered
from jobs.application.status import JobStatus
from jobs.errors import JobError
from jobs.images.rows_size import LARGEST_ROW
from jobs.itemwork.calls import LARGEST_COMMIT
from jobs.itemwork.deciding import largest_row_of, rules_of
from jobs.kinds import find_kind
from jobs.kinds.__main__ import _leave_to_the_next, clean, leave
from jobs.kinds.classify.coordinator import Classify
from tests.jobs.dealing import Paper
from tests.jobs.stored import SETTINGS, SPEC, Written

NONE: Any = None


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener("127.0.0.1", "secret")
    yield listener
    listener.close()


def test_a_job_that_plans_says_so_to_everyone_from_its_first_look_at_hdfs(listener: Listener) -> None:
    heard: list[bytes] = []

    class Watching:
        def make_folder(self, name: str) -> None:
            for path in ("/status", "/"):
                heard.append(Pages("application master", listener.address).read(path, "the job").content)
            raise HadoopError("HDFS is away")

    watching: Any = Watching()
    with pytest.raises(HadoopError):
        Application(SPEC, watching, NONE, NONE, listener, 2, ()).run(find_kind("classify"))

    status = JobStatus.from_json(json.loads(heard[0]))
    assert (status.job_id, status.state, status.attempt, status.nodes) == (SPEC.job_id, "planning", 2, ())
    assert (status.kind, status.unit) == ("classify", "items")
    assert b"No node has a part yet." in heard[1]


def test_an_output_that_is_there_ends_the_job_before_anything_is_planned() -> None:
    files: Any = Written({"/out/part-a.parquet": b"PAR1"})
    attempt = Attempt(1, SPEC, files, NONE, NONE, "", (), 0.0, lambda: 0.0)

    with pytest.raises(JobError, match="/out exists already"):
        Classify(attempt).roles(Knowledge(files, NONE))

    assert list(files) == ["/out/part-a.parquet"]


def test_a_kind_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(JobError, match=r"no kind of job called 'dance'.*classify, command"):
        find_kind("dance")


@pytest.mark.parametrize(
    ("batch", "vcores", "row_bytes", "most"), [(32, 2, 4096, 128), (1024, 16, 4096, 8192), (32, 2, 1 << 20, 32)]
)
def test_a_lease_is_two_full_batches_as_long_as_a_commit_can_hold_its_rows(
    batch: int, vcores: int, row_bytes: int, most: int
) -> None:
    settings = replace(SETTINGS, batch=batch, vcores=vcores, row_bytes=row_bytes)

    assert rules_of(settings).most_items == most
    largest = min(LARGEST_ROW, largest_row_of(settings))
    assert settings.row_bytes <= largest
    assert largest * most <= LARGEST_COMMIT, "however large outputs of an open length are, one commit holds a lease"


def test_containers_of_every_role_ask_for_what_was_ordered_for_each_beside_their_own_needs() -> None:
    own = Launch(["true"], {}, {}, 256, 1, resources={"disk": 1})
    role = as_ordered(
        Role("worker", ["n"], lambda _: own), replace(SPEC, resources={"yarn.io/gpu": 2, "disk": 9}, priority=7)
    )

    asked = role.launch(Seat("worker", 0, "n"))

    assert asked == replace(own, resources={"yarn.io/gpu": 2, "disk": 1}, priority=7)


def test_what_cannot_be_deleted_after_the_job_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    class Away:
        def delete(self, name: str) -> None:
            raise HadoopError("HDFS is away")

    clean(Away(), "/staging")  # type: ignore[arg-type]

    assert capsys.readouterr().out == "/staging is left behind: HDFS is away\n"


WEEK = 604_800.0


@pytest.mark.parametrize(
    ("number", "most", "began", "now", "is_last"),
    [
        (1, 2, {1: 0.0}, 5.0, False),
        (1, 1, {1: 0.0}, WEEK, True),
        (2, 2, {1: 0.0, 2: WEEK}, WEEK + 599.0, True),
        (2, 2, {1: 0.0, 2: WEEK}, WEEK + 601.0, False),
        (3, 3, {1: 0.0, 2: WEEK, 3: WEEK + 60.0}, WEEK + 601.0, False),
        (4, 2, {1: 0.0, 2: 1.0, 3: WEEK, 4: WEEK + 700.0}, WEEK + 750.0, True),
        (4, 2, {1: 0.0, 4: WEEK}, WEEK + 1.0, True),
        (2, 2, {}, WEEK, True),
    ],
    ids=[
        "the first of two",
        "the only one",
        "the one before has ended just now",
        "the one before ended more than ten minutes ago",
        "two of three within ten minutes",
        "the third has ended just now",
        "two have left nothing and may have ended just now",
        "nothing is known",
    ],
)
def test_attempts_are_counted_within_the_time_in_which_yarn_counts_them(
    number: int, most: int, began: dict[int, float], now: float, is_last: bool
) -> None:
    assert attempts.is_last(number, most, began, now) == is_last


TWENTY_MINUTES = 1200.0


@pytest.mark.parametrize(
    ("stands", "attempt_seconds", "goes_on"),
    [
        (True, (5.0, WEEK, 60.0), [True, True, False]),
        (False, (TWENTY_MINUTES, TWENTY_MINUTES), [True, False]),
        (False, (5.0, WEEK), [True, False]),
    ],
    ids=["the third of a pool has failed a minute after the second", "a job whose attempts fail late", "after a week"],
)
def test_attempts_count_in_all_and_for_what_stands_those_that_yarn_remembers(
    stands: bool,
    attempt_seconds: tuple[float, ...],
    goes_on: list[bool],
    listener: Listener,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, ahead, paper, exits, found = [1e9], [0.0], Paper(), list[int](), list[bool]()
    clock = SimpleNamespace(time=lambda: now[0] + ahead[0], monotonic=lambda: now[0])
    for module in (attempts, master):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(os, "_exit", exits.append)
    files: Any = SimpleNamespace(write=lambda *_, **__: None, rename=lambda *_, **__: None)
    journal = SimpleNamespace(earlier=paper.records.copy, append=paper.append)
    monkeypatch.setattr(Journal, "open", lambda *_: journal)

    def fail(seconds: float, _: Attempt) -> None:
        now[0] += seconds
        ahead[0] = WEEK  # somebody sets the clock meanwhile
        raise HadoopError("HDFS is away")

    for number, seconds in enumerate(attempt_seconds, start=1):
        work: Any = partial(fail, seconds)
        application = Application(replace(SPEC, stands=stands), files, NONE, NONE, listener, number, ())
        with pytest.raises(HadoopError):
            application.run(work)
        before = len(exits)
        _leave_to_the_next(application)
        found.append(len(exits) > before)
        ahead[0] = 0.0
        now[0] += 10.0

    assert found == goes_on


def test_an_attempt_goes_on_from_a_journal_of_a_version_that_noted_when_the_job_began_alone() -> None:
    older = Record(BEGAN, {"at": 5.0, "attempt": 1})
    own = Record(BEGAN, {"at": 5.0, "attempt": 2, "now": 70.0})

    assert attempts.begin_times([older, own]) == {1: 5.0, 2: 70.0}


@pytest.mark.parametrize("has_ended", [True, False])
def test_a_resourcemanager_that_was_killed_as_it_heard_of_the_end_is_asked_whether_it_did(
    has_ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Session:
        def leave(self, succeeded: bool, message: str, page: str) -> None:
            raise HadoopError("leaving failed: the attempt is not found")

    class Asked:
        def application(self, job_id: str) -> SimpleNamespace:
            assert job_id == "application_1_0001"
            return SimpleNamespace(has_ended=has_ended)

    monkeypatch.setattr("jobs.kinds.__main__.Yarn", Asked)
    with nullcontext() if has_ended else pytest.raises(HadoopError, match="not found"):
        leave(Session(), "application_1_0001", True, "done", "")  # type: ignore[arg-type]


def test_a_runner_whose_attempt_yarn_has_given_up_hears_that_its_container_is_to_end(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = threading.Event()

    class Working(Runner):
        def run(self) -> Outcome:
            assert heard.wait(60)
            return Outcome("too late")

        def progress(self) -> Progress:
            return Progress(0, 1, "tasks")

    def give_up(_: float) -> None:
        raise GivenUp("talking to the ResourceManager failed: appattempt_1_0001_000001 is not known")

    session: Any = SimpleNamespace(heartbeat=give_up)
    files: Any = Written({})
    application = Application(SPEC, files, session, NONE, listener, 1, ())
    monkeypatch.setenv("CONTAINER_ID", "container_1_0001_01_000001")
    before = signal.signal(signal.SIGTERM, lambda *_: heard.set())
    try:
        with pytest.raises(GivenUp):
            application._run_alone(Working())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard.is_set()
