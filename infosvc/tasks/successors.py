"""Tasks that wait for others: for those that must succeed before, and for a place among those of their array."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from infosvc.state.configuration import StoredTask
from infosvc.state.transaction import Transaction
from infosvc.tasks.changing import change
from infosvc.wire.errors import InvalidInput
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import LONGEST_REASON, Task, TaskState

FULL = "as many of its array as may run at once are queued or run"


def first_state(transaction: Transaction, owner: str, spec: TaskSpec) -> tuple[TaskState, str]:
    """In which state a new task begins, and why; InvalidInput when its owner has no task of an id in `after`."""
    before = [_predecessor(transaction, owner, task_id) for task_id in spec.after]
    for one in before:
        if one.state.is_final and one.state is not TaskState.SUCCEEDED:
            return TaskState.FAILED, _why(one)
    if not all(one.state is TaskState.SUCCEEDED for one in before):
        return TaskState.WAITING, ""
    return (TaskState.QUEUED, "") if _has_place(transaction, owner, spec) else (TaskState.WAITING, FULL)


def end(
    transaction: Transaction, stored: StoredTask, state: TaskState, reason: str, now: float, **differs: Any
) -> Task:
    """End a task; those that waited for it alone become queued, or fail with it, and so on for those after them.

    Those of its array that waited for a place take it, the oldest first.
    """
    ended = change(transaction, stored, now, state=state, reason=reason, **differs)
    waiting = _waiting(transaction, ended.owner)
    left, arrays = [ended], set[str]()
    while left:
        before = left.pop()
        if before.spec.array:
            arrays.add(before.spec.array)
        for task_id in waiting.get(before.task_id, ()):
            after = _settle(transaction, transaction.find("tasks", (task_id,)), before, now)
            if after is not None and after.state.is_final:
                left.append(after)
    for array in sorted(arrays):
        _give_places(transaction, ended.owner, array, now)
    return ended


def _settle(transaction: Transaction, stored: StoredTask, before: Task, now: float) -> Task | None:
    """What becomes of a task after the end of one before it, None when nothing does."""
    if stored.task.state is not TaskState.WAITING:
        return None
    if before.state is not TaskState.SUCCEEDED:
        return change(transaction, stored, now, state=TaskState.FAILED, reason=_why(before))
    if not _may_begin(transaction, stored.task.spec):
        return None
    if not _has_place(transaction, stored.task.owner, stored.task.spec):
        return change(transaction, stored, now, reason=FULL)
    return change(transaction, stored, now, state=TaskState.QUEUED)


def _may_begin(transaction: Transaction, spec: TaskSpec) -> bool:
    """Whether all that must come before have succeeded.

    One that is there no more had succeeded: had it failed, those after it would have failed with it.
    """
    before = [transaction.find("tasks", (task_id,)) for task_id in spec.after]
    return all(one is None or one.task.state is TaskState.SUCCEEDED for one in before)


def _has_place(transaction: Transaction, owner: str, spec: TaskSpec) -> bool:
    """Whether fewer of its array are queued or run than may at once."""
    if spec.array is None or spec.at_once is None:
        return True
    return (
        sum(one.task.state is not TaskState.WAITING for one in _of_array(transaction, owner, spec.array)) < spec.at_once
    )


def _give_places(transaction: Transaction, owner: str, array: str, now: float) -> None:
    """Let those of an array begin that wait for a place alone, as long as there are places."""
    waiting = [one for one in _of_array(transaction, owner, array) if one.task.state is TaskState.WAITING]
    for stored in sorted(waiting, key=lambda one: one.task.created_at):
        if _may_begin(transaction, stored.task.spec):
            if not _has_place(transaction, owner, stored.task.spec):
                return
            change(transaction, stored, now, state=TaskState.QUEUED, reason="")


def _of_array(transaction: Transaction, owner: str, array: str) -> list[StoredTask]:
    """The tasks of an owner's array that have not ended."""
    return [
        one
        for one in transaction.configuration.tasks.values()
        if one.task.spec.array == array and one.task.owner == owner and not one.task.state.is_final
    ]


def _waiting(transaction: Transaction, owner: str) -> dict[str, list[str]]:
    """The waiting tasks of an owner, by each task that must come before them."""
    found: dict[str, list[str]] = defaultdict(list)
    for task_id, stored in transaction.configuration.tasks.items():
        if stored.task.state is TaskState.WAITING and stored.task.owner == owner:
            for before in stored.task.spec.after:
                found[before].append(task_id)
    return found


def _predecessor(transaction: Transaction, owner: str, task_id: str) -> Task:
    stored: StoredTask | None = transaction.find("tasks", (task_id,))
    if stored is None or stored.task.owner != owner:
        raise InvalidInput(
            f"{owner} has no task {task_id} that could come before",
            "after",
            remedy="leave it out; `nodewise task list` shows those that there are",
        )
    return stored.task


def _why(before: Task) -> str:
    said = f": {before.reason}" if before.reason else ""
    return f"{before.task_id}, which must succeed before, is {before.state}{said}"[:LONGEST_REASON]
