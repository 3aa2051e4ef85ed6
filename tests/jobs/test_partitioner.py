"""The application master before it has a plan, and after the job: without HDFS and without YARN."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hadoop.errors import HadoopError
from hadoop.rest.pages import Pages
from jobs.application.listener import Listener
from jobs.application.status import JobStatus
from jobs.errors import JobError
from jobs.kinds.classify.__main__ import clean
from jobs.kinds.classify.partitioner import Partitioner, rules_of
from tests.jobs.stored import SETTINGS, Written


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener("127.0.0.1", "secret")
    yield listener
    listener.close()


def made(listener: Listener, filesystem: Any) -> Partitioner:
    unused: Any = None
    return Partitioner(SETTINGS, filesystem, unused, unused, listener, 2, ())


def test_a_job_that_plans_says_so_to_everyone_from_its_first_look_at_hdfs(listener: Listener) -> None:
    heard: list[bytes] = []

    class Watching:
        def exists(self, name: str) -> bool:
            for path in ("/status", "/"):
                heard.append(Pages("application master", listener.address).read(path, "the job").content)
            raise HadoopError("HDFS is away")

    with pytest.raises(HadoopError):
        made(listener, Watching()).run()

    status = JobStatus.from_json(json.loads(heard[0]))
    assert (status.job_id, status.state, status.attempt, status.nodes) == (SETTINGS.job_id, "planning", 2, ())
    assert b"No node has a part yet." in heard[1]


def test_an_output_that_is_there_ends_the_job_before_anything_is_done(listener: Listener) -> None:
    files = Written({"/out/part-a.parquet": b"PAR1"})

    with pytest.raises(JobError, match="/out exists already"):
        made(listener, files).run()

    assert list(files) == ["/out/part-a.parquet"]


@pytest.mark.parametrize(
    ("batch", "vcores", "row_bytes", "most"), [(32, 2, 4096, 128), (1024, 16, 4096, 8192), (32, 2, 1 << 20, 32)]
)
def test_a_lease_is_two_full_batches_as_long_as_a_commit_can_hold_its_rows(
    batch: int, vcores: int, row_bytes: int, most: int
) -> None:
    settings = replace(SETTINGS, batch=batch, vcores=vcores, row_bytes=row_bytes)

    assert rules_of(settings).most_images == most


def test_what_cannot_be_deleted_after_the_job_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    class Away:
        def delete(self, name: str) -> None:
            raise HadoopError("HDFS is away")

    clean(Away(), "/staging")  # type: ignore[arg-type]

    assert capsys.readouterr().out == "/staging is left behind: HDFS is away\n"
