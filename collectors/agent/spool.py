"""Carries ended runs to the service in batches, and fetches the wanted state when the service has a newer one."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from infosvc.errors import InfoError, InvalidInput, TooLarge
from infosvc.records import Report, Run, Wanted

KEPT_RUNS = 300  # while the service is away; then the oldest go
BATCH_RUNS = 50
BATCH_BYTES = 256 * 1024
HEARTBEAT_SECONDS = 5.0
MAX_RETRY_SECONDS = 5.0

log = logging.getLogger(__name__)


class Service(Protocol):
    """What the spool needs of an InfoClient."""

    def slots(self, node_name: str) -> Wanted:
        """The wanted state of a node."""

    def report(self, node_name: str, report: Report) -> int:
        """Take a batch; the version of the wanted state that is current."""


class Slotted(Protocol):
    """What the spool needs of the slots."""

    version: int

    def want(self, wanted: Wanted) -> None:
        """Take a new wanted state."""


@dataclass(frozen=True)
class _Batch:
    sequence: int
    runs: tuple[tuple[Run, float], ...]


class Spool:
    """Runs on their way from one node to the service; `add` may be called from any thread, `step` from one."""

    def __init__(
        self, node_name: str, agent_version: str, service: Service, slots: Slotted, clock: Callable[[], float]
    ) -> None:
        self._node_name = node_name
        self._agent_version = agent_version
        self._service = service
        self._slots = slots
        self._clock = clock
        self._boot = uuid.uuid4().hex
        self._runs: deque[tuple[Run, float]] = deque(maxlen=KEPT_RUNS)
        self._lock = threading.Lock()
        self._sequence = 0
        self._batch: _Batch | None = None
        self._behind = True
        self._next_call = 0.0
        self._heartbeat = 0.0
        self._failures = 0

    def add(self, run: Run) -> None:
        """Keep a run that ended just now until the service has it."""
        with self._lock:
            self._runs.append((run, self._clock()))

    def step(self, now: float) -> None:
        """Talk to the service if there is a reason to; a service that is away is asked again, ever less often."""
        if now < self._next_call:
            return
        try:
            if self._behind:
                self._fetch()
            if self._batch or self._runs or now >= self._heartbeat:
                self._send(now)
        except InfoError as error:
            self._failures += 1
            self._next_call = now + min(2.0 ** (self._failures - 1), MAX_RETRY_SECONDS)
            if self._failures == 1:
                log.warning("the service does not take reports: %s", error)
        else:
            if self._failures:
                log.info("the service takes reports again")
            self._failures = 0

    def _fetch(self) -> None:
        self._slots.want(self._service.slots(self._node_name))
        self._behind = False

    def _send(self, now: float) -> None:
        # A batch keeps its number until it is acknowledged, so that one whose answer was lost is not counted twice.
        self._batch = self._batch or self._take()
        sent = self._clock()
        runs = tuple(replace(run, age=round(max(sent - ended, 0.0), 3)) for run, ended in self._batch.runs)
        report = Report(self._boot, self._batch.sequence, self._agent_version, runs)
        try:
            version = self._service.report(self._node_name, report)
            self._behind = version != self._slots.version
        except (InvalidInput, TooLarge) as error:
            log.warning("%d runs were refused and are dropped: %s", len(runs), error)
        self._batch = None
        self._heartbeat = now + HEARTBEAT_SECONDS

    def _take(self) -> _Batch:
        taken: list[tuple[Run, float]] = []
        size = 0
        with self._lock:
            while self._runs and len(taken) < BATCH_RUNS and size < BATCH_BYTES:
                run = self._runs.popleft()
                taken.append(run)
                size += len(run[0].value or "") + len(run[0].reason or "")
        self._sequence += 1
        return _Batch(self._sequence, tuple(taken))
