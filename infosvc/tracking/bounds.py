"""How much is kept of runs: of one, of one user's and of all, and for how long. The oldest go for those that come.

A look at all runs costs a millisecond of the thread that writes. So it is taken when a run begins, and after that for
each KiB and each thousand points that a run grows by.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from infosvc.settings import Settings
from infosvc.state.configuration import Configuration
from infosvc.state.tracked import Run, StoredRun
from infosvc.state.transaction import Transaction
from infosvc.tasks.retention import DAY, MOST_AT_ONCE, oldest
from infosvc.wire.errors import Conflict

MOST_OF_USER = 2_000  # runs that are not tasks
SHARE_OF_USER = 4  # one user's runs may have one of so many bytes and points
MOST_PARAMS = 1_000
MOST_TAGS = 200
MOST_METRICS = 100
LARGEST_RUN = 256 << 10  # bytes of all but its points
_LOOK_BYTES = 1 << 10
_LOOK_POINTS = 1_000
_REMEDY = "delete runs that nobody needs"


def size_of(run: Run) -> int:
    """The bytes of all but its points."""
    return len(msgspec.json.encode(run))


def put(transaction: Transaction, run: Run, settings: Settings) -> Run:
    """Keep a run as it is now; Conflict when it has too much, or its owner or all together have.

    What is kept of an earlier task of its id goes.
    """
    kept: StoredRun | None = transaction.find("runs", (run.run_id,))
    before = kept if kept is not None and kept.run.created_at == run.created_at else None
    stored = StoredRun(run, size_of(run))
    _check(stored, settings)
    gone = _make_room(transaction.configuration, stored, settings) if _needs_look(before, stored) else []
    if kept is not None and before is None:
        gone.append(run.run_id)
    for run_id in gone:
        transaction.remove_run(run_id)
    transaction.put("runs", (run.run_id,), stored)
    return run


def overdue(configuration: Configuration, settings: Settings, now: float) -> list[str]:
    """The ids of some runs that are kept no longer at Unix second `now`: that of a task stays as long as the task."""
    old = now - settings.task_days * DAY
    late = [
        run_id
        for run_id, stored in list(configuration.runs.items())
        if (run_id not in configuration.tasks if stored.run.is_task else stored.run.changed_at < old)
    ]
    return late[:MOST_AT_ONCE]


def _check(stored: StoredRun, settings: Settings) -> None:
    run = stored.run
    for number, most, what in (
        (len(run.params), MOST_PARAMS, "params"),
        (len(run.tags), MOST_TAGS, "tags"),
        (len(run.metrics), MOST_METRICS, "metrics"),
        (run.points, settings.points_of_run, "points of metrics"),
        (stored.size, LARGEST_RUN, "bytes of params, tags and the like"),
    ):
        if number > most:
            raise Conflict(
                f"the run {run.run_id} would have {number} {what}, and may have {most}", remedy="log fewer of them"
            )


def _needs_look(before: StoredRun | None, after: StoredRun) -> bool:
    if before is None:
        return True
    return (
        before.size // _LOOK_BYTES < after.size // _LOOK_BYTES
        or before.run.points // _LOOK_POINTS < after.run.points // _LOOK_POINTS
    )


def _make_room(configuration: Configuration, new: StoredRun, settings: Settings) -> list[str]:
    """The runs that must go for this one; Conflict when that would not help."""
    owner = new.run.owner
    others = [stored for run_id, stored in configuration.runs.items() if run_id != new.run.run_id]
    own = [stored for stored in others if stored.run.owner == owner]
    _refuse(
        f"the runs of {owner}",
        [*own, new],
        settings.bytes_of_runs // SHARE_OF_USER,
        settings.points_of_runs // SHARE_OF_USER,
    )
    many = _count([*own, new]) - MOST_OF_USER
    gone = oldest(_aged(own), many, 0) if many > 0 else []
    left = [stored for stored in others if stored.run.run_id not in gone]
    over = sum(stored.size for stored in left) + new.size - settings.bytes_of_runs
    many = _count([*left, new]) - settings.most_tasks
    if over > 0 or many > 0:
        more = oldest(_aged(left), many, over)
        gone, left = [*gone, *more], [stored for stored in left if stored.run.run_id not in more]
    _refuse("the runs of all users", [*left, new], settings.bytes_of_runs, settings.points_of_runs)
    return gone


def _refuse(whose: str, runs: Iterable[StoredRun], most_bytes: int, most_points: int) -> None:
    size = points = 0
    for stored in runs:
        size += stored.size
        points += stored.run.points
    if size > most_bytes:
        raise Conflict(f"{whose} would have {size} bytes, and may have {most_bytes}", remedy=_REMEDY)
    if points > most_points:
        raise Conflict(f"{whose} would have {points} points of metrics, and may have {most_points}", remedy=_REMEDY)


def _count(runs: Iterable[StoredRun]) -> int:
    return sum(not stored.run.is_task for stored in runs)


def _aged(runs: Iterable[StoredRun]) -> list[tuple[float, str, int]]:
    """Each run that is not a task, the oldest first: when it changed last, its id, its bytes."""
    return sorted((stored.run.changed_at, stored.run.run_id, stored.size) for stored in runs if not stored.run.is_task)
