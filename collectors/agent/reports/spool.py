"""Carries ended runs to the service in batches, and fetches the wanted state when the service has a newer one."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from collectors.agent.reports.backlog import Backlog, Ended
from collectors.agent.reports.wanted_state import check_wanted
from infosvc.wire.errors import Conflict, InfoError, InvalidInput, Revoked, TooLarge
from infosvc.wire.records import Receipt, Report, Run, Wanted

BATCH_RUNS = 50
BATCH_BYTES = 256 * 1024
PENDING_BYTES = 2 * 1024 * 1024  # in memory, when not even the disk takes them; then the oldest go
RUN_BYTES = 200  # what a run takes beside its texts
LINGER_SECONDS = 0.2  # the longest time that a run waits for others of its batch
HEARTBEAT_SECONDS = 2.5
MAX_RETRY_SECONDS = 5.0

log = logging.getLogger(__name__)


class Service(Protocol):
    """What the spool needs of an InfoClient."""

    def slots(self, node_name: str) -> Wanted:
        """The wanted state of a node."""

    def report(self, node_name: str, report: Report) -> Receipt:
        """Take a batch."""


class Slotted(Protocol):
    """What the spool needs of the slots."""

    version: int

    def want(self, wanted: Wanted) -> None:
        """Take a new wanted state."""

    def note_delivered(self, runs: Sequence[Run]) -> None:
        """The service has these runs."""

    def note_counts(self, counts: Mapping[str, int]) -> None:
        """How often each input of cluster-wide processors has changed."""


@dataclass(frozen=True)
class _Batch:
    """Runs under one number, and the segment of the backlog that holds them; with the `last` of it, that is done."""

    sequence: int
    runs: tuple[Ended, ...]
    segment: int | None = None
    last: bool = True


class Spool:
    """Runs on their way from one node to the service.

    `add`, `flush`, `refresh`, `wake`, `wait` and `close` may be called from any thread, `step` from one. `spread`,
    between 0 and 1, parts the retries of many agents. Ages go by `clock`, in monotonic seconds.
    """

    def __init__(
        self,
        node_name: str,
        agent_version: str,
        service: Service,
        slots: Slotted,
        backlog: Backlog,
        clock: Callable[[], float],
        spread: float = 0.5,
    ) -> None:
        self._node_name = node_name
        self._agent_version = agent_version
        self._service = service
        self._slots = slots
        self._backlog = backlog
        self._clock = clock
        self._slowness = 0.75 + 0.5 * spread
        self._boot = uuid.uuid4().hex
        self._runs: deque[Ended] = deque()
        self._bytes = 0
        self._dropped = 0
        self._lock = threading.Lock()  # of the runs in memory
        self._turn = threading.Lock()  # of the batch, its parts and the backlog; free while the service is asked
        self._awake = threading.Event()
        self._flushing = False
        self._sequence = 0
        self._batch: _Batch | None = None
        self._parts: deque[_Batch] = deque()
        self._behind = True
        self._refreshing = False
        self._next_call = 0.0
        self._heartbeat = 0.0
        self._failures = 0
        self._disk_complained = False
        self._refused = ""

    def add(self, run: Run) -> None:
        """Keep a run that ended just now until the service has it."""
        with self._lock:
            self._runs.append((run, self._clock()))
            self._bytes += _size(run)
            while self._bytes > PENDING_BYTES:
                self._bytes -= _size(self._runs.popleft()[0])
                self._dropped += 1
            alone = len(self._runs) == 1
        if alone:  # then the reporter does not know yet that something waits
            self._awake.set()

    def flush(self) -> None:
        """No further run is to be expected soon: send what is there."""
        if self._runs and not self._flushing:
            self._flushing = True
            self._awake.set()

    def refresh(self) -> None:
        """Fetch the wanted state at the next step, even in the pause after a failure: the service is there."""
        self._refreshing = True
        self._awake.set()

    def wake(self) -> None:
        """Let `wait` return at once."""
        self._awake.set()

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, or sooner when something has happened."""
        self._awake.wait(seconds)
        self._awake.clear()

    def step(self, now: float) -> float:
        """Talk to the service if there is a reason to; return for how many seconds there will be none.

        A service that is away is asked again, ever less often, and runs go to disk meanwhile. Revoked goes through.
        """
        if self._refreshing:
            self._refreshing, self._behind, self._next_call = False, True, 0.0
        if now >= self._next_call and (self._behind or now >= self._due()):
            try:
                self._talk(now)
            except Revoked:
                raise
            except InfoError as error:
                self._fail(now, error)
            else:
                if self._failures:
                    log.info("the service takes reports again")
                self._failures = 0
        return max(max(self._next_call, 0.0 if self._behind else self._due()) - now, 0.0)

    def close(self) -> None:
        """Put what is left on disk, for the next agent; what is under way with the service is then there, too."""
        self._shelve()

    def _due(self) -> float:
        """When the next report is to be sent, if the service answers."""
        if self._flushing or self._batch or self._parts or self._backlog:
            return 0.0
        oldest = self._runs[0][1] + LINGER_SECONDS if self._runs else self._heartbeat
        return min(oldest, self._heartbeat)

    def _talk(self, now: float) -> None:
        if self._behind:
            self._fetch()
            self._behind = False
        if now >= self._due():
            self._send(now)

    def _fetch(self) -> None:
        """Take the wanted state, unless it is wrong: then the slots stay, and reports go on."""
        try:
            self._slots.want(check_wanted(self._service.slots(self._node_name), self._node_name))
        except (InvalidInput, Conflict) as error:
            if self._refused != str(error):
                log.error("the wanted state is refused, so the slots stay as they are: %s", error)
            self._refused = str(error)

    def _fail(self, now: float, error: InfoError) -> None:
        self._failures += 1
        self._next_call = now + min(2.0 ** (self._failures - 1), MAX_RETRY_SECONDS) * self._slowness
        if self._failures == 1:
            log.warning("the service does not take reports: %s", error)
        self._shelve()

    def _send(self, now: float) -> None:
        # A batch keeps its number until it is acknowledged, so that one whose answer was lost is not counted twice.
        with self._turn:
            batch = self._batch = self._batch or self._next()
        sent = self._clock()
        runs = tuple(replace(run, age=round(max(sent - ended, 0.0), 3)) for run, ended in batch.runs)
        lost = self._dropped + self._backlog.dropped
        try:
            receipt = self._service.report(
                self._node_name, Report(self._boot, batch.sequence, self._agent_version, runs, lost)
            )
        except (InvalidInput, TooLarge) as error:
            with self._turn:
                self._divide(self._batch or batch, error)
                self._batch = None
        else:
            with self._turn:
                self._forget(self._batch or batch)
                self._batch = None
            self._behind = receipt.wanted_version != self._slots.version
            self._slots.note_delivered(runs)
            self._slots.note_counts(receipt.inputs)
        self._heartbeat = now + HEARTBEAT_SECONDS

    def _divide(self, batch: _Batch, error: InfoError) -> None:
        """Find the run that the service cannot take: send each half by itself, and drop what is refused alone."""
        half = len(batch.runs) // 2
        if half:
            self._parts.appendleft(replace(batch, runs=batch.runs[half:]))
            self._parts.appendleft(replace(batch, runs=batch.runs[:half], last=batch.segment is None))
            return
        names = ", ".join(run.data_name for run, _ in batch.runs) or "a report without runs"
        log.warning("%s was refused and is dropped: %s", names, error)
        self._forget(batch)

    def _forget(self, batch: _Batch) -> None:
        if batch.segment is not None and batch.last:
            self._backlog.remove(batch.segment)

    def _next(self) -> _Batch:
        self._sequence += 1
        if self._parts:
            return replace(self._parts.popleft(), sequence=self._sequence)
        waiting = self._backlog.first()
        if waiting is not None:
            return _Batch(self._sequence, tuple(waiting[1]), waiting[0])
        return _Batch(self._sequence, self._take())

    def _take(self) -> tuple[Ended, ...]:
        """The oldest runs in memory, as many as a batch may hold."""
        taken: list[Ended] = []
        size = 0
        with self._lock:
            while self._runs and len(taken) < BATCH_RUNS and size < BATCH_BYTES:
                run = self._runs.popleft()
                taken.append(run)
                size += _size(run[0])
            self._bytes -= size
            self._flushing = self._flushing and bool(self._runs)
        return tuple(taken)

    def _shelve(self) -> None:
        """Bring everything that is only in memory to disk; where that fails it stays in memory."""
        try:
            with self._turn:
                if self._batch:
                    self._batch = self._store(self._batch)
                for place, part in enumerate(self._parts):
                    self._parts[place] = self._store(part)
                while runs := self._take():
                    self._keep(runs)
                self._forget_dropped()
            self._disk_complained = False
        except OSError as error:
            if not self._disk_complained:
                log.warning("the spool cannot be written (%s): runs wait in memory", error.strerror)
            self._disk_complained = True

    def _store(self, batch: _Batch) -> _Batch:
        """The batch with a segment of its own, if it has none."""
        if batch.segment is not None or not batch.runs:
            return batch
        return replace(batch, segment=self._backlog.keep(batch.runs))

    def _forget_dropped(self) -> None:
        """What was the oldest may be gone, where the disk has no room for so many."""
        if self._batch and not self._is_kept(self._batch):
            self._batch = None
        self._parts = deque(part for part in self._parts if self._is_kept(part))

    def _is_kept(self, batch: _Batch) -> bool:
        return batch.segment is None or batch.segment in self._backlog

    def _keep(self, runs: tuple[Ended, ...]) -> None:
        try:
            self._backlog.keep(runs)
        except OSError:
            with self._lock:
                self._runs.extendleft(reversed(runs))
                self._bytes += sum(_size(run) for run, _ in runs)
            raise


def _size(run: Run) -> int:
    texts = (run.values or {}).items()
    return RUN_BYTES + len(run.value or "") + len(run.reason or "") + sum(len(name) + len(text) for name, text in texts)
