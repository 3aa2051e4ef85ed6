"""One thread that writes: it stores all changes that wait in one commit, then lets their callers go on."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from infosvc.settings import Ack, Settings
from infosvc.state.current_values import STEP, Cell
from infosvc.state.database import Database
from infosvc.state.transaction import Commit, Key, Point, Transaction
from infosvc.state.value import Value
from infosvc.state.views import Latest
from infosvc.wire.errors import InfoError, NotReady

T = TypeVar("T")

PACE_SECONDS = 0.02  # reports wait for each other as long as this, because a commit costs more than what is in it
FORGET_AGAIN_SECONDS = 5.0
CROWD = 24  # reports that need not wait for more
LOOK_SECONDS = 0.004  # between two looks at how many there are
MOST_LAGGING_POINTS = 200_000  # of the history; then the oldest go
COMMITS = "commit"  # the counter that every commit raises, by which one whose answer was lost is found out

_log = logging.getLogger(__name__)


class _Doubt(NamedTuple):
    """A commit whose answer was lost: its number, what it brings to readers if it was stored, and the points of
    acknowledged values in it."""

    number: int
    transaction: Transaction | None
    points: int = 0


class _Waiting(NamedTuple):
    change: Callable[[Transaction], Any]
    answer: Future[Any]
    patient: bool = False
    may_lag: bool = False


class Writer:
    """Serialises all changes; `write` returns when the change is stored, or raises why it was not.

    A change is a function of a Transaction. It raises an InfoError before it touches the transaction, or not at all.
    Each of `listeners` is called with a Commit after readers see it and before callers are answered. With ack fast,
    reports are acknowledged when readers see them; the latest value of each cell is stored soon after. Of a service
    that shares its database they are acknowledged so only while the database takes what came before: the service that
    takes over knows the stored ones.
    """

    def __init__(
        self, latest: Latest, store: Database, settings: Settings, listeners: list[Callable[[Commit], None]]
    ) -> None:
        self.listeners = listeners
        self.commits = 0
        self.commit_seconds = 0.0
        self._latest = latest
        self._store = store
        self._settings = settings
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._lagging = _Lagging(settings.flush)
        self._closed = False
        self._commit_since: float | None = None
        self._committed = 0.0
        self._forget_from = 0.0
        self._fails = False
        self._number = latest.configuration.counters.get(COMMITS, 0)
        self._doubt: _Doubt | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Changes that wait for the next commit, and values that readers see and the database does not yet hold."""
        return self._queue.qsize() + len(self._lagging.values) + len(self._lagging.points)

    def write(self, change: Callable[[Transaction], T]) -> T:
        """Do one change and wait until it is stored; NotReady when the database does not take it in time."""
        done: T = self._wait(_Waiting(change, Future()))
        return done

    def write_report(self, change: Callable[[Transaction], T]) -> T:
        """Do what a report says and wait until that is acknowledged; it may be stored together with others."""
        done: T = self._wait(_Waiting(change, Future(), patient=True, may_lag=self._settings.ack is Ack.FAST))
        return done

    def _wait(self, item: _Waiting) -> Any:
        since = self._commit_since
        busy = since is not None and self._latest.clock.monotonic() - since > self._settings.patience
        if self._closed or (busy and not item.may_lag):
            # Refused at once, so that callers who wait do not use up the threads that readers need.
            raise NotReady(f"the database {self._store.name} takes no writes now", remedy="try again later")
        answer = item.answer
        self._queue.put(item)
        try:
            return answer.result(timeout=self._settings.patience)
        except TimeoutError:
            answer.cancel()
            raise NotReady(
                (f"the database {self._store.name} did not take the write within {self._settings.patience:g} s"),
                remedy="it may still be stored; read it back, or try again",
            ) from None

    def close(self) -> None:
        """Store what waits, then end."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch = self._take()
            ended = None in batch
            waiting = [item for item in batch if item is not None and item.answer.set_running_or_notify_cancel()]
            if waiting:
                self._commit(waiting)
            self._flush(everything=ended)
            self._forget_part()

    def _take(self) -> list[_Waiting | None]:
        """What waits; after a report it pays to let others come before the next commit."""
        try:
            first = self._queue.get(timeout=self._next_due())
        except queue.Empty:
            return []
        if first is not None and first.patient:
            self._let_others_come()
        batch = [first]
        while len(batch) < self._settings.batch and batch[-1] is not None:
            try:
                batch.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return batch

    def _next_due(self) -> float | None:
        """Seconds until something is due that nobody waits for, None for nothing."""
        forget = max(0.0, self._forget_from - time.monotonic()) if self._store.has_more_to_forget else None
        return min(
            (at for at in (forget, self._lagging.due(self._latest.clock.monotonic())) if at is not None), default=None
        )

    def _forget_part(self) -> None:
        """Delete some of the history that is forgotten, so little that whoever waits for a commit does not notice."""
        if not self._store.has_more_to_forget or time.monotonic() < self._forget_from:
            return
        try:
            self._store.forget_part()
        except InfoError as error:
            self._forget_from = time.monotonic() + FORGET_AGAIN_SECONDS
            _log.warning("forgotten history is still in the database: %s", error)

    def _let_others_come(self) -> None:
        """Wait until the pace allows another commit, or so many wait that it is worth while."""
        while self._queue.qsize() < CROWD and (rest := self._committed + PACE_SECONDS - time.monotonic()) > 0:
            time.sleep(min(rest, LOOK_SECONDS))

    def _commit(self, batch: list[_Waiting]) -> None:
        self._committed = time.monotonic()
        lag = all(item.may_lag for item in batch) and not (self._fails and self._settings.shared_with)
        if not lag and (error := self._settle_doubt()):
            _fail([item.answer for item in batch], error)
            return
        transaction = Transaction(self._latest.configuration, self._latest.current_values)
        done = [(item, result) for item in batch for result in _try(item.change, transaction, item.answer)]
        if lag:
            self._lagging.add(transaction, self._latest.clock.monotonic())
        elif not self._save(transaction, [item for item, _ in done]):
            return
        else:
            self._lagging.forget(transaction)
        self._tell(self._show(transaction))
        for item, result in done:  # last: who goes on from here finds all that follows from its change
            item.answer.set_result(result)

    def _save(self, transaction: Transaction, items: list[_Waiting]) -> bool:
        """Store a transaction; when it cannot be, tell whom it concerns, and no others."""
        error = self._try_to_save(transaction)
        if isinstance(error, NotReady):
            self._doubt = _Doubt(self._number + 1, transaction)
        if error is None:
            return True
        if len(items) > 1 and not isinstance(error, NotReady):
            for item in items:  # one change that cannot be stored must not take the others with it
                self._commit([item])
        else:
            _fail([item.answer for item in items], error)
        return False

    def _try_to_save(self, transaction: Transaction) -> Exception | None:
        started = self._commit_since = self._latest.clock.monotonic()
        transaction.put("counters", (COMMITS,), self._number + 1)
        error: Exception | None = None
        try:
            self._store.save(transaction)
            self._number += 1
        except Exception as found:
            error = found
        self.commit_seconds += self._latest.clock.monotonic() - started
        self._commit_since = None
        self._log_change(error)
        return error

    def _log_change(self, error: Exception | None) -> None:
        """Say once that nothing can be stored, and once that it works again; every caller is told besides."""
        fails = isinstance(error, NotReady)
        if fails and not self._fails:
            _log.error("changes cannot be stored now: %s", error)
        elif error is None and self._fails:
            _log.warning("changes are stored again")
        self._fails = fails or (self._fails and error is not None)

    def _settle_doubt(self) -> InfoError | None:
        """Find out whether a commit whose answer was lost went through; if so, readers see it from now on.

        The error when the database does not tell.
        """
        if self._doubt is None:
            return None
        try:
            stored = self._store.counter(COMMITS)
        except InfoError as error:
            return error
        doubt, self._doubt = self._doubt, None
        if stored == doubt.number:
            self._number = doubt.number
            self._lagging.drop_points(doubt.points)
            if doubt.transaction is not None:
                base = Transaction(self._latest.configuration, self._latest.current_values)
                self._tell(self._show(_on_top(doubt.transaction, base, self._lagging)))
        return None

    def _show(self, transaction: Transaction) -> Commit:
        """From here on readers see it."""
        before, self._latest.configuration = self._latest.configuration, transaction.configuration
        since = self._latest.clock.monotonic() // STEP * STEP
        stepped = self._latest.current_values.apply(transaction.values.items(), since)
        self.commits += 1
        return Commit(before, transaction.configuration, transaction.changed, transaction.values, stepped)

    def _tell(self, commit: Commit) -> None:
        for listener in self.listeners:
            try:
                listener(commit)
            except Exception:  # the thread that writes must go on whatever its listeners run into
                _log.exception("a listener of commits failed")

    def _flush(self, everything: bool) -> None:
        """Store a part of what was acknowledged before; what the database does not take now stays for later."""
        while self._lagging.due(self._latest.clock.monotonic()) == 0 or (everything and self._lagging):
            error: Exception | None = self._settle_doubt()  # first: what was stored is no part of the next
            part = self._lagging.part(
                Transaction(self._latest.configuration, self._latest.current_values), self._settings.flush_rows
            )
            if error is None:
                error = self._try_to_save(part)
                if isinstance(error, NotReady):
                    self._doubt = _Doubt(self._number + 1, None, len(part.points))
            self._lagging.settle(part, self._latest.clock.monotonic(), error is None)
            if not everything or error is not None:
                return


class _Lagging:
    """What readers see already and the database does not; it is stored in rounds, each in several parts."""

    def __init__(self, flush_seconds: float) -> None:
        self._flush_seconds = flush_seconds
        self.values: dict[Cell, Value | None] = {}
        self.points: deque[Point] = deque()
        self.lost_points = 0
        self.changed: set[tuple[str, Key]] = set()
        self._next_round = 0.0
        self._left: int | None = None  # values of the round that is under way

    def __bool__(self) -> bool:
        return bool(self.values or self.changed or self.points)

    def due(self, now: float) -> float | None:
        """Seconds until the next part should be stored; None when there is nothing to store."""
        return max(0.0, self._next_round - now) if self else None

    def add(self, transaction: Transaction, now: float) -> None:
        """What a transaction changed, acknowledged and not stored."""
        if not self:
            self._next_round = now + self._flush_seconds
        self.values.update(transaction.values)
        self.changed |= transaction.changed
        self.points.extend(transaction.points)
        while len(self.points) > MOST_LAGGING_POINTS:
            self.points.popleft()
            self.lost_points += 1

    def part(self, transaction: Transaction, most: int) -> Transaction:
        """The next `most` values of the round and points, and all else, in a transaction."""
        if self._left is None:
            self._left = len(self.values)
        transaction.values.update(islice(self.values.items(), min(most, self._left)))
        transaction.changed |= self.changed
        transaction.points += islice(self.points, most)
        return transaction

    def settle(self, part: Transaction, now: float, stored: bool) -> None:
        """What was stored need not be stored again; the next round begins some time after this one has ended."""
        if stored:
            self.forget(part)
            self.drop_points(len(part.points))
            self._left = max(0, (self._left or 0) - len(part.values))
        if not stored or not (self._left or self.points):
            self._left = None
            self._next_round = now + self._flush_seconds

    def drop_points(self, number: int) -> None:
        """The oldest points, which are stored."""
        for _ in range(min(number, len(self.points))):
            self.points.popleft()

    def forget(self, transaction: Transaction) -> None:
        """A newer transaction that holds the same rows was stored."""
        for cell in transaction.values:
            self.values.pop(cell, None)
        self.changed -= transaction.changed


def _on_top(doubt: Transaction, transaction: Transaction, newer: _Lagging) -> Transaction:
    """What a stored transaction changed, upon what readers see now; rows and cells that are newer meanwhile stay."""
    for table, key in doubt.changed - newer.changed:
        transaction.put(table, key, doubt.find(table, key))
    if doubt.audit:
        transaction.put("audit", ("last",), doubt.audit[-1])
    transaction.values.update((cell, value) for cell, value in doubt.values.items() if cell not in newer.values)
    return transaction


def _try(change: Callable[[Transaction], Any], transaction: Transaction, answer: Future[Any]) -> list[Any]:
    """The result of one change in a list, or none when it was refused and its caller has been told."""
    try:
        return [change(transaction)]
    except Exception as error:
        _fail([answer], error)
        return []


def _fail(answers: list[Future[Any]], error: Exception) -> None:
    if not isinstance(error, InfoError):
        _log.error("a change could not be made", exc_info=error)
        error = NotReady("the service could not store this because of a fault of its own; its log says more")
    for answer in answers:
        answer.set_exception(error)
