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
        self.refused: set[str] = set()

    def forget(self, task_id: str) -> None:
        if task_id in self.refused:
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
    first, second = forgotten(client), forgotten(client)

    folders.refused.add(first)
    sweeper.sweep()
    sweeper.sweep()
    assert said == ["the files of a task that was forgotten are still in HDFS: it is in safe mode"]
    assert folders.forgotten == [second]
    folders.refused.clear()
    sweeper.sweep()
    sweeper.sweep()

    assert folders.forgotten == [second, first]
    assert client.gone_tasks() == ()


def test_it_looks_now_and_then_alone(client: InfoClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "PAUSE_SECONDS", 600.0)
    folders = Folders()
    sweeper = Sweeper(client, folders, print)
    sweeper.sweep()
    forgotten(client)

    sweeper.sweep()

    assert folders.forgotten == []
