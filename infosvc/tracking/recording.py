"""What a program notes of its run: params, tags, and points of metrics."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from infosvc.access.roles import Caller
from infosvc.settings import Settings
from infosvc.state.tracked import LastPoint, MetricPoint
from infosvc.state.transaction import Transaction
from infosvc.tracking import runs
from infosvc.wire.errors import InvalidInput, NotReady

AT_ONCE = 2
PATIENCE_SECONDS = 2.0


@dataclass(frozen=True)
class Noted:
    """What a program notes at once."""

    params: Sequence[tuple[str, str]] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    points: Sequence[MetricPoint] = ()


class Turns:
    """Lets so few calls with points wait for the writer that their points never make one commit long.

    Others wait a moment, and are refused with NotReady then, after which MLflow's client tries again by itself.
    """

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(AT_ONCE)

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Have a turn until the block ends."""
        if not self._free.acquire(timeout=PATIENCE_SECONDS):
            raise NotReady("too many programs log metrics now", remedy="try again later, or log with log_batch")
        try:
            yield
        finally:
            self._free.release()


def record(transaction: Transaction, caller: Caller, run_id: str, noted: Noted, settings: Settings, now: float) -> None:
    """Add to a run; InvalidInput when a param has another value already, Conflict when it would have too much.

    No message shows a value: it may be a secret.
    """
    run = runs.find(transaction.configuration, caller, run_id).run
    params = dict(run.params)
    for name, value in noted.params:
        if params.setdefault(name, value) != value:
            raise InvalidInput(
                f"the param {name[:80]!r} has another value already", "key", remedy="a param never changes: use a tag"
            )
    changed = msgspec.structs.replace(
        run,
        changed_at=now,
        params=params,
        tags={**run.tags, **noted.tags},
        metrics=_last(run.metrics, noted.points),
        points=run.points + len(noted.points),
    )
    runs.keep(transaction, changed, settings, now)
    transaction.metric_points += noted.points


def _last(known: Mapping[str, LastPoint], points: Sequence[MetricPoint]) -> dict[str, LastPoint]:
    """The last point of each metric."""
    found = dict(known)
    for point in points:
        last = found.get(point.name)
        if last is None or (point.step, point.timestamp) >= (last.step, last.timestamp):
            found[point.name] = LastPoint(point.value, point.timestamp, point.step)
    return found
