"""Which tasks are kept: those that have not ended, as many as may be, and of the others the latest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from infosvc.settings import Settings
from infosvc.state.configuration import Configuration, StoredTask
from infosvc.state.transaction import Transaction
from infosvc.wire.errors import Conflict

MOST_OF_USER = 1_000  # tasks of one user that have not ended
MOST_NOT_ENDED = 10_000  # of all users
SHARE_OF_USER = 4  # one user's may have one of so many bytes
MOST_AT_ONCE = 500  # removed in one commit
MOST_GONE = 100_000  # tasks whose files wait for a submitter; of more, those of the oldest stay
DAY = 86_400.0


def make_room(transaction: Transaction, owner: str, size: int, settings: Settings, now: float) -> None:
    """Let a task of so many bytes in; the oldest that have ended go for it. Conflict when there are too many."""
    tasks = transaction.configuration.tasks
    not_ended = [stored for stored in tasks.values() if stored.task.ended_at is None]
    own = [stored for stored in not_ended if stored.task.owner == owner]
    if len(own) >= MOST_OF_USER:
        raise _too_many(f"{owner} has {len(own)} tasks that have not ended")
    if len(not_ended) >= MOST_NOT_ENDED:
        raise _too_many(f"there are {len(not_ended)} tasks that have not ended")
    if _bytes(own) + size > settings.bytes_of_tasks // SHARE_OF_USER:
        raise _too_many(f"the tasks of {owner} that have not ended have {_bytes(own)} bytes")
    if _bytes(not_ended) + size > settings.bytes_of_tasks:
        raise _too_many(f"the tasks that have not ended have {_bytes(not_ended)} bytes")
    over = _bytes(tasks.values()) + size - settings.bytes_of_tasks
    many = len(tasks) - len(not_ended) - settings.most_tasks
    if over > 0 or many > 0:
        for task_id in oldest(((at, key, tasks[key].size) for at, key in _ended(tasks)), many, over):
            forget(transaction, task_id, now)


def overdue(tasks: Mapping[str, StoredTask], settings: Settings, now: float) -> list[str]:
    """The ids of some tasks that are kept no longer at Unix second `now`, the oldest first."""
    ended = _ended(tasks)
    old = now - settings.task_days * DAY
    many = max(0, len(ended) - settings.most_tasks)
    late = [task_id for place, (ended_at, task_id) in enumerate(ended) if place < many or ended_at < old]
    return late[:MOST_AT_ONCE]


def retire(transaction: Transaction, settings: Settings, now: float) -> int:
    """Remove some tasks that are kept no longer; how many."""
    late = overdue(transaction.configuration.tasks, settings, now)
    for task_id in late:
        forget(transaction, task_id, now)
    return len(late)


def forget(transaction: Transaction, task_id: str, now: float) -> None:
    """Remove a task, and note that what it has left on the cluster is to go, if a submitter has ever had it."""
    is_on_cluster = transaction.configuration.tasks[task_id].task.taken
    transaction.put("tasks", (task_id,), None)
    if is_on_cluster:
        gone = transaction.configuration.gone_tasks
        if len(gone) >= MOST_GONE:
            transaction.put("gone_tasks", (min(gone, key=gone.__getitem__),), None)
        transaction.put("gone_tasks", (task_id,), now)


def gone(configuration: Configuration) -> Iterator[str]:
    """The ids of forgotten tasks whose files are to go, and are no other task's now."""
    for task_id in configuration.gone_tasks:
        stored = configuration.tasks.get(task_id)
        if stored is None or not stored.task.taken:
            yield task_id


def oldest(aged: Iterable[tuple[float, str, int]], many: int, over: int) -> list[str]:
    """The keys of the first of (moment, key, bytes), the oldest first: so many, and so many bytes of them at least."""
    gone: list[str] = []
    for _, key, size in aged:
        if len(gone) >= many and over <= 0:
            break
        gone.append(key)
        over -= size
    return gone


def _ended(tasks: Mapping[str, StoredTask]) -> list[tuple[float, str]]:
    """When each that has ended did, and its id, in this order."""
    return sorted((stored.task.ended_at, key) for key, stored in tasks.items() if stored.task.ended_at is not None)


def _bytes(tasks: Iterable[StoredTask]) -> int:
    return sum(stored.size for stored in tasks)


def _too_many(said: str) -> Conflict:
    return Conflict(said, remedy="wait until some have ended, or stop some with `nodewise task stop`")
