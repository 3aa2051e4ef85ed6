"""The queues as they are answered: to admins whole, to each user with what is their own and the places of the rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hadoop.rest.amounts import MEMORY, VCORES, Amounts
from hadoop.rest.resourcemanager import ResourceManager
from hadoop.rest.scheduler import CAPACITY, LeafQueue
from infosvc.wire.queues import ClusterQueues, ExpectedStart, QueueUser, WaitingApplication, YarnQueue
from infosvc.wire.tasks import Task, TaskState
from jobs.dashboard.queue.line import Line, Row, read_line
from jobs.dashboard.queue.masters import find_limit
from jobs.dashboard.queue.outlook import Tasks, outlook, task_of
from jobs.dashboard.queue.reasons import waits_for
from jobs.dashboard.sources.values import Viewer
from jobs.queueing.estimate import Interval

MOST_ROWS = 1_000
MOST_USERS = 100
LONGEST_SAID = 500
OTHER_SCHEDULER = (
    "YARN uses its {kind} scheduler here, of whose queues nothing can be told: with the capacity scheduler "
    "(yarn.resourcemanager.scheduler.class) this page shows them"
)


@dataclass(frozen=True)
class WholeLine:
    """What waits, with all that is known of it, and the owner of each that is a task, None for others."""

    answer: ClusterQueues
    owners: Sequence[str | None]


def look(manager: ResourceManager, tasks: Tasks, read_ended: Callable[[], Sequence[Row]]) -> WholeLine:
    """Ask YARN for all of it; HadoopError. `tasks` are all that the service has."""
    line = read_line(manager)
    told = ClusterQueues(line.now, line.scheduler.kind, "", (), (), line.whole, 0)
    if line.scheduler.kind != CAPACITY:
        said = OTHER_SCHEDULER.format(kind=line.scheduler.kind)
        return WholeLine(replace(told, said=said, whole=not line.waiting), ())
    starts = outlook(line, read_ended() if line.waiting else (), tasks)
    queues = {one.name: one for one in line.scheduler.queues}
    positions: Counter[str] = Counter()
    rows, owners = [], list[str | None]()
    for row in line.waiting[:MOST_ROWS]:
        positions[row.known.queue] += 1
        task = task_of(row, tasks)
        queue = queues.get(row.known.queue)
        reason = waits_for(row, positions[row.known.queue], queue, line.rooms, counts_all=line.counts_all)
        rows.append(_shown(row, task, positions[row.known.queue], reason, starts[row.job_id], line.now))
        owners.append(task.owner if task else None)
    whole = line.whole and len(line.waiting) <= MOST_ROWS
    return WholeLine(replace(told, queues=_queues(line), waiting=tuple(rows), whole=whole), owners)


def shown_to(viewer: Viewer, whole: WholeLine, tasks: Tasks) -> ClusterQueues:
    """What a caller may see of it."""
    rows = []
    for row, owner in zip(whole.answer.waiting, whole.owners, strict=True):
        is_own = owner is not None and owner == viewer.user_name
        may_see = viewer.owners is None or (owner is not None and owner in viewer.owners)
        rows.append(replace(row, own=is_own) if may_see else WaitingApplication(queue=row.queue, position=row.position))
    open_ones = (TaskState.WAITING, TaskState.QUEUED)
    held_back = sum(
        task.owner == viewer.user_name and task.state in open_ones and task.application_id is None
        for task in tasks.values()
    )
    queues = tuple(replace(one, users=_shown_users(viewer, one.users)) for one in whole.answer.queues)
    return replace(whole.answer, queues=queues, waiting=tuple(rows), held_back=held_back)


def _shown_users(viewer: Viewer, users: Sequence[QueueUser]) -> tuple[QueueUser, ...]:
    """Admins see all; YARN's users are not those of tokens, so others see none by name."""
    return tuple(users) if viewer.owners is None else tuple(one for one in users if one.name in viewer.owners)


def _shown(
    row: Row, task: Task | None, position: int, reason: str, start: Interval | str, now: float
) -> WaitingApplication:
    known, asks = row.known, row.asks or {}
    expected = ExpectedStart(now + start.earliest, now + start.latest) if isinstance(start, Interval) else None
    return WaitingApplication(
        queue=known.queue,
        position=position,
        job_id=row.job_id,
        task_id=task.task_id if task else None,
        kind=row.kind,
        is_job=row.is_job,
        name=task.name if task else known.application.name,
        owner=task.owner if task else known.user,
        memory_mb=asks.get(MEMORY),
        vcores=asks.get(VCORES),
        resources={name: count for name, count in asks.items() if count and name not in (MEMORY, VCORES)},
        since=known.started_at,
        waits_for=reason,
        said=known.application.diagnostics[:LONGEST_SAID],
        start=expected,
        no_start=None if isinstance(start, Interval) else start,
    )


def _queues(line: Line) -> tuple[YarnQueue, ...]:
    running = Counter(one.known.queue for one in line.seated)
    asks: dict[str, list[Amounts]] = defaultdict(list)
    for one in line.waiting:
        asks[one.known.queue].append(one.asks or {})
    counts_all = line.counts_all
    return tuple(_queue(one, running[one.name], asks[one.name], counts_all) for one in line.scheduler.queues)


def _queue(queue: LeafQueue, running: int, asks: Sequence[Amounts], counts_all: bool) -> YarnQueue:
    users = sorted(queue.users, key=lambda one: one.name)[:MOST_USERS]
    return YarnQueue(
        name=queue.name,
        state=queue.state,
        capacity=queue.capacity,
        used=queue.used_part,
        maximum=queue.maximum,
        masters_mb=queue.masters.get(MEMORY, 0),
        masters_most_mb=queue.masters_most.get(MEMORY, 0),
        running=running,
        waiting=len(asks),
        users=tuple(QueueUser(one.name, one.used.get(MEMORY, 0), one.most.get(MEMORY, 0)) for one in users),
        masters=find_limit(queue, asks, counts_all=counts_all),
    )
