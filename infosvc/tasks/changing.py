"""The one place in which a task that is kept changes, so that its times always fit its state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from infosvc.posting import outbox
from infosvc.state.configuration import StoredTask
from infosvc.state.transaction import Transaction
from infosvc.wire.tasks import Task, TaskState


def change(transaction: Transaction, stored: StoredTask, now: float, **differs: Any) -> Task:
    """Give a task other fields at Unix second `now`; it begins when it first runs, and ends in a final state.

    The address that it names is then told of its end.
    """
    task = replace(stored.task, changed_at=now, **differs)
    if task.state is TaskState.RUNNING and task.started_at is None:
        task = replace(task, started_at=now)
    if task.state.is_final:
        task = replace(task, ended_at=now)
        outbox.tell_end(transaction, task, now)
    transaction.put("tasks", (task.task_id,), msgspec.structs.replace(stored, task=task))
    return task
