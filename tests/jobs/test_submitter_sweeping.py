"""The submitter deletes the files of tasks that the real service has forgotten; HDFS is played."""

from __future__ import annotations

import pytest

from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskState
from jobs.submitter import sweeping
from jobs.submitter.sweeping import Sweeper


class Folders:
    """An HDFS that notes whose files were deleted."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []
        self.fails = False

    def forget(self, task_id: str) -> None:
        if self.fails:
            raise HadoopError("it is in safe mode")
        self.forgotten.append(task_id)


def forgotten(client: InfoClient) -> str:
    task = client.submit_task(TaskSpec(("true",)))
    client.put_task_news(task.task_id, TaskNews(TaskState.SUCCEEDED))
    client.remove_task(task.task_id)
    return task.task_id


def test_what_a_forgotten_task_has_left_is_deleted_once(client: InfoClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "PAUSE_SECONDS", 0.0)
    folders, said = Folders(), list[str]()
    sweeper = Sweeper(client, folders, said.append)
    gone = {forgotten(client), forgotten(client)}

    folders.fails = True
    sweeper.sweep()
    assert said == ["files of tasks that were forgotten are still in HDFS: it is in safe mode"]
    folders.fails = False
    sweeper.sweep()
    sweeper.sweep()

    assert sorted(folders.forgotten) == sorted(gone)
    assert client.gone_tasks() == ()


def test_it_looks_now_and_then_alone(client: InfoClient) -> None:
    folders = Folders()
    sweeper = Sweeper(client, folders, print)
    sweeper.sweep()
    forgotten(client)

    sweeper.sweep()

    assert folders.forgotten == []
