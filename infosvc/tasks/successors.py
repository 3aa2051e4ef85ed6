"""Tasks that must come after others: when they may begin, and what the end of a task means for those after it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from infosvc.state.configuration import StoredTask
from infosvc.state.transaction import Transaction
from infosvc.tasks.changing import change
from infosvc.wire.errors import InvalidInput
from infosvc.wire.tasks import LONGEST_REASON, Task, TaskState


def first_state(transaction: Transaction, owner: str, after: Iterable[str]) -> tuple[TaskState, str]:
    """In which state a new task begins, and why; InvalidInput when its owner has no task of an id in `after`."""
    before = [_predecessor(transaction, owner, task_id) for task_id in after]
    for one in before:
        if one.state.is_final and one.state is not TaskState.SUCCEEDED:
            return TaskState.FAILED, _why(one)
    if all(one.state is TaskState.SUCCEEDED for one in before):
        return TaskState.QUEUED, ""
    return TaskState.WAITING, ""


def end(
    transaction: Transaction, stored: StoredTask, state: TaskState, reason: str, now: float, **differs: Any
) -> Task:
    """End a task; those that waited for it alone become queued, or fail with it, and so on for those after them."""
    ended = change(transaction, stored, now, state=state, reason=reason, **differs)
    waiting = _waiting(transaction, ended.owner)
    left = [ended]
    while left:
        before = left.pop()
        for task_id in waiting.get(before.task_id, ()):
            after = _settle(transaction, transaction.find("tasks", (task_id,)), before, now)
            if after is not None and after.state.is_final:
                left.append(after)
    return ended


def _settle(transaction: Transaction, stored: StoredTask, before: Task, now: float) -> Task | None:
    """What becomes of a task after the end of one before it, None when nothing does."""
    if stored.task.state is not TaskState.WAITING:
        return None
    if before.state is not TaskState.SUCCEEDED:
        return change(transaction, stored, now, state=TaskState.FAILED, reason=_why(before))
    others = [transaction.find("tasks", (task_id,)) for task_id in stored.task.spec.after]
    # One that is there no more had succeeded: had it failed, this task would have failed with it.
    if any(one is not None and one.task.state is not TaskState.SUCCEEDED for one in others):
        return None
    return change(transaction, stored, now, state=TaskState.QUEUED)


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
