"""How a task begins, changes and ends: each function refuses first and then changes the transaction.

A task that has ended never changes again. All times are Unix seconds by the service's clock.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Any

import msgspec

from infosvc.posting import outbox
from infosvc.settings import Settings
from infosvc.state.configuration import StoredTask
from infosvc.state.transaction import Transaction
from infosvc.tasks import retention, successors
from infosvc.tasks.changing import change
from infosvc.tasks.listing import find
from infosvc.wire.errors import Conflict, InvalidInput
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskProgress, TaskState

LONGEST_NAME = 128
LARGEST_SPEC = 128 << 10  # bytes; nobody's command line is longer


@dataclass(frozen=True)
class NewTask:
    """What is to begin: under which id, whose, and which task it repeats."""

    task_id: str
    owner: str
    spec: TaskSpec
    again_of: str | None = None


def new_id(owner: str, key: str = "") -> str:
    """The id of a new task: always the same for one owner and one key, at random without a key.

    >>> new_id("admin", "mnist-1")
    'task_f329d30149018db9'
    """
    if not key:
        return f"task_{secrets.token_hex(8)}"
    digest = hashlib.sha256(b"\0".join((owner.encode(), key.encode())))
    return f"task_{digest.hexdigest()[:16]}"


def create(transaction: Transaction, new: NewTask, settings: Settings, now: float) -> tuple[Task, bool]:
    """Begin a task, or find it when it has begun already; whether it is new.

    Conflict when another one has its id, or its owner or all together have too many; InvalidInput when it must come
    after a task that its owner does not have.
    """
    there = transaction.find("tasks", (new.task_id,))
    if there is not None:
        return _same(there.task, new), False
    size = _size(new.spec)
    retention.make_room(transaction, new.owner, size, settings, now)
    state, reason = successors.first_state(transaction, new.owner, new.spec)
    task = Task(
        task_id=new.task_id,
        owner=new.owner,
        name=_name(new.spec),
        spec=new.spec,
        state=state,
        created_at=now,
        changed_at=now,
        reason=reason,
        ended_at=now if state.is_final else None,
        again_of=new.again_of,
    )
    transaction.put("tasks", (task.task_id,), StoredTask(task, size))
    if state.is_final:
        outbox.tell_end(transaction, task, now)
    return task, True


def stop(transaction: Transaction, owners: frozenset[str] | None, task_id: str, now: float) -> Task:
    """End a task that no submitter has taken, and ask that any other is ended; Conflict when it has ended."""
    stored = find(transaction.configuration, owners, task_id)
    task = stored.task
    if task.ended_at is not None:
        raise Conflict(f"{task_id} has ended: it is {task.state}", "task_id", remedy="there is nothing to stop")
    if task.state is TaskState.WAITING or (task.state is TaskState.QUEUED and not task.taken):
        return successors.end(transaction, stored, TaskState.STOPPED, "stopped before it began", now)
    return task if task.stop_asked else change(transaction, stored, now, stop_asked=True)


def take_news(transaction: Transaction, task_id: str, news: TaskNews, now: float) -> Task:
    """Note what the submitter has learned; what was noted before changes nothing.

    Conflict when the task has ended, waits for others, or has begun anew since the news.
    """
    stored = find(transaction.configuration, None, task_id)
    task = stored.task
    told = {one.name: value for one in fields(news) if (value := getattr(news, one.name)) is not None}
    told["taken"] = True  # by whoever has news of it
    if _is_overtaken(task, news):
        told = {name: value for name, value in told.items() if name not in ("state", "reason")}
    if all(getattr(task, name) == value for name, value in told.items()):
        return task
    _refuse_news(task, news)
    if _begins_anew(task, news.attempt):
        told = {"node_name": None} | told
    if news.state.is_final or news.state is TaskState.QUEUED or _begins_anew(task, news.attempt):
        told |= {"idle_since": None, "output_folder": None}
    if news.state.is_final:
        del told["state"]
        return successors.end(transaction, stored, news.state, told.pop("reason", task.reason), now, **told)
    return change(transaction, stored, now, **told)


def take_progress(transaction: Transaction, task_id: str, progress: TaskProgress, now: float) -> Task:
    """Note what the runner of a task tells; what was noted before changes nothing.

    Conflict when the task has ended, has begun anew since, or tells of a start that cannot have come yet.
    """
    stored = find(transaction.configuration, None, task_id)
    task = stored.task
    state = TaskState.RUNNING if progress.running else TaskState.STARTING
    _refuse_news(task, TaskNews(state, attempt=progress.attempt))
    if progress.attempt > (task.attempt or 0) + 1:
        raise Conflict(f"{task_id} has not begun its attempt {progress.attempt - 1}", "attempt", remedy="tell it later")
    told: dict[str, Any] = {
        "state": state,
        "reason": progress.reason,
        "attempt": progress.attempt,
        "idle_since": None if progress.idle_since is None else min(progress.idle_since, now),
        "output_folder": progress.output_folder,
    }
    if all(getattr(task, name) == value for name, value in told.items()):
        return task
    if _begins_anew(task, progress.attempt):
        told["node_name"] = None
    return change(transaction, stored, now, **told)


def remove(transaction: Transaction, owners: frozenset[str] | None, task_id: str, now: float) -> None:
    """Forget a task that has ended; Conflict when it has not."""
    task = find(transaction.configuration, owners, task_id).task
    if task.ended_at is None:
        raise Conflict(
            f"{task_id} has not ended: it is {task.state}",
            "task_id",
            remedy=f"stop it first with `nodewise task stop {task_id}`",
        )
    retention.forget(transaction, task_id, now)


def _same(task: Task, new: NewTask) -> Task:
    if task.spec != new.spec or task.again_of != new.again_of:
        raise Conflict(
            f"{task.task_id} was asked for under this Idempotency-Key, and asks for something else",
            "Idempotency-Key",
            remedy="choose another key for another task",
        )
    return task


def _size(spec: TaskSpec) -> int:
    size = len(msgspec.json.encode(spec))
    if size > LARGEST_SPEC:
        raise InvalidInput(
            f"the task has {size} bytes of arguments and the like, and may have {LARGEST_SPEC}",
            "argv",
            remedy="put them into a file of its archive",
        )
    return size


def _name(spec: TaskSpec) -> str:
    """What people call it: the name they gave it, or that of its program."""
    return (spec.name or spec.program or PurePosixPath(spec.argv[0]).name or spec.argv[0])[:LONGEST_NAME]


def _begins_anew(task: Task, attempt: int | None) -> bool:
    return attempt is not None and task.attempt not in (None, attempt)


def _is_overtaken(task: Task, news: TaskNews) -> bool:
    """Whether the runner has told since how its start goes on, or that the program runs which the submitter saw."""
    is_same = news.attempt in (None, task.attempt)
    is_told = task.state is TaskState.RUNNING or (task.state is TaskState.STARTING and task.reason != "")
    return is_same and news.state is TaskState.STARTING and is_told


def _refuse_news(task: Task, news: TaskNews) -> None:
    if task.ended_at is not None:
        raise Conflict(f"{task.task_id} has ended: it is {task.state}", "state", remedy="end what still runs of it")
    if TaskState.WAITING in (task.state, news.state):
        raise Conflict(
            f"{task.task_id} is {task.state} and cannot become {news.state} by news",
            "state",
            remedy="the service itself decides which tasks wait",
        )
    is_end = news.state.is_final and news.application_id == task.application_id is not None
    is_late = news.attempt is not None and task.attempt is not None and news.attempt < task.attempt
    if is_late and not is_end:  # for what YARN says of the end holds whatever a runner has told
        raise Conflict(
            f"{task.task_id} has begun its attempt {task.attempt}, and this is news of attempt {news.attempt}",
            "attempt",
            remedy="leave it out",
        )
