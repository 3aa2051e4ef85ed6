"""A job of a pool whose results cannot be stored: what it has done is kept where `job resume` finds it."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from hadoop.client.filesystem import Entry
from hadoop.errors import HadoopError
from jobs.application.coordinator import Knowledge
from jobs.application.job_spec import JobSpec
from jobs.application.journal import Record
from jobs.application.resuming import resume
from jobs.division import decision_store, kept_work
from jobs.errors import JobError
from jobs.itemwork.coordinator import SHARED
from jobs.kinds import find_kind
from jobs.kinds.pool.lives import MOST_TRIES, Lives
from jobs.kinds.pool.pooled_job import PooledJob, State
from tests.jobs.stored import Written
from tests.jobs.test_pool_workers import NONE, A, Scene

OWNERS = "/user/me/.nodewise"
STAGING, KEPT = f"{OWNERS}/application_1_0001/jobs/1", f"{OWNERS}/pool_1_0001_1"


class Files(Written):
    """A folder of an owner; `closed` are folders that others may not enter."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: set[str] = set()
        self.times: dict[str, float] = {}

    def write(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self[name] = content

    def make_folder(self, name: str, mode: int = 0o755) -> None:
        self.closed |= {name} if mode == 0o700 else set()

    def rename(self, source: str, target: str) -> None:
        if self.exists(target):
            raise HadoopError(f"{target} exists")
        for name in [one for one in self if one.startswith(f"{source}/")]:
            self[target + name.removeprefix(source)] = self.pop(name)
        self.closed = {target if one == source else one for one in self.closed}

    def delete(self, name: str) -> None:
        for one in [one for one in self if one == name or one.startswith(f"{name}/")]:
            del self[one]

    def home(self) -> str:
        return "/user/me"

    def entries(self, folder: str) -> list[Entry]:
        names = sorted({one.removeprefix(f"{folder}/").partition("/")[0] for one in self if one.startswith(folder)})
        return [Entry(name, 0, self.times.get(name, time.time())) for name in names]


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def add_done(scene: Scene, files: Files, others: int = 0) -> PooledJob:
    """A job that has all its rows, in whose folder there is a journal; so many others were at work meanwhile."""
    job = scene.add(1, [A], 1)
    for number in range(others):
        scene.workers.remove_job(scene.add(2 + number, [A], 1))
    scene.commit(A, *scene.lease(A))
    assert job.is_done
    job._pool = SimpleNamespace(filesystem=files)  # type: ignore[assignment]
    files[f"{STAGING}/journal/attempt-1/0"] = b"rows"
    return job


def store(scene: Scene, files: Files, job: PooledJob, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the results stored, which fails for good."""

    def fail() -> None:
        raise error

    monkeypatch.setattr(job._work, "finish", fail)
    job.tries = MOST_TRIES
    lives = Lives(scene.workers, Knowledge(files, NONE), lambda _: None, 1, "photos")  # type: ignore[arg-type]
    lives.look()
    lives.wait()


@pytest.mark.parametrize("error", [JobError("/out1 exists already"), HadoopError("HDFS is full")])
def test_what_a_job_has_done_is_kept_where_it_is_resumed_when_it_cannot_be_stored(
    scene: Scene, files: Files, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_done(scene, files)
    scene.now = 7.0

    store(scene, files, job, error, monkeypatch)

    assert job.state is State.FAILED
    assert job.said == f"{error}; all its work is done, and `nodewise job resume pool_1_0001_1` stores it"
    assert files[f"{KEPT}/journal/attempt-1/0"] == b"rows"
    assert not files.exists(STAGING)
    assert KEPT in files.closed, "no others may read it"
    assert kept_work.seconds_of(files, KEPT) == 7.0  # type: ignore[arg-type]
    spec = JobSpec.from_json(json.loads(files[f"{KEPT}/job.json"]))
    assert (spec.job_id, spec.staging, spec.owners_folder, spec.token) == ("pool_1_0001_1", KEPT, OWNERS, "")
    assert (spec.kind, spec.settings["output"], spec.application_id) == ("classify", "/out1", "application_1_0001")


def test_one_that_fails_before_all_of_it_is_done_leaves_nothing(
    scene: Scene, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_done(scene, files)
    scene.workers.remove_job(job)
    job.state = State.PLANNING

    def fail(_: object) -> None:
        raise JobError("its input has changed")

    monkeypatch.setattr(job, "begin", fail)
    monkeypatch.setattr(job, "has_plan", lambda: True)
    lives = Lives(scene.workers, Knowledge(files, NONE), lambda _: None, 1, "photos")  # type: ignore[arg-type]
    lives.begin(job)
    lives.wait()

    assert (job.state, job.said) == (State.FAILED, "its input has changed")
    assert not files.exists(STAGING)
    assert not files.exists(KEPT)


def test_what_cannot_be_kept_fails_with_its_own_reason(
    scene: Scene, files: Files, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = add_done(scene, files)
    files[f"{KEPT}/job.json"] = b"of another attempt"

    store(scene, files, job, HadoopError("HDFS is full"), monkeypatch)

    assert (job.state, job.said) == (State.FAILED, "HDFS is full")
    assert f"what it has done could not be kept: {KEPT} exists" in capsys.readouterr().out


@pytest.mark.parametrize("others", [0, 1])
def test_whoever_resumes_it_knows_whether_its_speeds_say_anything(
    scene: Scene, files: Files, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_done(scene, files, others)

    store(scene, files, job, JobError("/out1 exists already"), monkeypatch)

    assert (Record(SHARED) in scene.papers["1"].records) == bool(others)


def test_a_job_of_a_pool_of_which_nothing_is_kept_is_not_resumed_and_yarn_is_not_asked(files: Files) -> None:
    submitter: Any = SimpleNamespace(filesystem=files, yarn=NONE, staging=lambda job_id: f"{OWNERS}/{job_id}")

    with pytest.raises(JobError, match="nothing of pool_1_0001_1 is kept that could be stored"):
        resume(submitter, "pool_1_0001_1", NONE, find_kind)


def test_what_is_kept_of_jobs_in_pools_goes_after_a_week(files: Files) -> None:
    for number, days in enumerate((1, 6, 8), start=1):
        files[f"{OWNERS}/pool_1_0001_{number}/{kept_work.MARK}"] = b"{}"
        files.times[f"pool_1_0001_{number}"] = time.time() - days * 86_400.0
    session: Any = SimpleNamespace(filesystem=files, yarn=SimpleNamespace(applications=list))

    decision_store.sweep(session)

    assert [one.name for one in files.entries(OWNERS)] == ["pool_1_0001_1", "pool_1_0001_2"]
