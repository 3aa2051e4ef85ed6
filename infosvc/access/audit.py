"""The audit log: every change and every refused call, each line sealed with the hash of the one before."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple, Protocol

from infosvc.access.rate_limit import RateLimit
from infosvc.settings import Clock
from infosvc.state.transaction import Transaction
from infosvc.wire.answers import AuditEntry
from infosvc.wire.errors import InfoError

BEGINNING = "0" * 64  # what the first entry is chained to

LONGEST = 4096  # characters of a call or a detail; what is longer ends in an ellipsis

# A flood of refused calls leaves a few lines a minute, the rest as one number.
NOTED_PER_SECOND = 0.5
NOTED_AT_ONCE = 20
PAUSE_SECONDS = 1.0
PAUSE_IN_FLOOD_SECONDS = 10.0

_log = logging.getLogger(__name__)


def record(
    transaction: Transaction, at: float, who: str, address: str, call: str, status: int, detail: str = ""
) -> None:
    """Append one entry to what a commit will store; `at` in Unix seconds."""
    last = transaction.configuration.audit.get("last")
    sequence, before = (last.sequence + 1, last.hash) if last else (1, BEGINNING)
    entry = AuditEntry(sequence, at, who[:255], address[:255], _shorten(call), status, _shorten(detail), "")
    sealed = replace(entry, hash=seal(entry, before))
    transaction.configuration.audit["last"] = sealed
    transaction.audit.append(sealed)


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def seal(entry: AuditEntry, before: str) -> str:
    """The hash of an entry that follows one with the hash `before`."""
    said = [before, entry.sequence, entry.at, entry.who, entry.address, entry.call, entry.status, entry.detail]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


class Chain:
    """Follows the log from its beginning; `broken` says what is wrong at the first entry that does not fit.

    `noted` is the number and the hash of an entry as somebody wrote them down earlier.
    """

    def __init__(self, noted: tuple[int, str] | None = None) -> None:
        self.sequence = 0
        self.hash = BEGINNING
        self.broken: str | None = None
        self._noted = noted

    def follow(self, entries: Iterable[AuditEntry]) -> bool:
        """Take the next entries; False as soon as one does not fit."""
        for entry in entries:
            if not entry.hash:  # what the service remembers and does not find
                self.broken = self._missing(entry.sequence)
            elif entry.sequence != self.sequence + 1:
                self.broken = f"entry {self.sequence + 1} is missing: entry {entry.sequence} stands in its place"
            elif entry.hash != seal(entry, self.hash):
                self.broken = f"entry {entry.sequence} was changed, or the one before it was"
            elif self._noted and self._noted[0] == entry.sequence and self._noted[1] != entry.hash:
                self.broken = f"entry {entry.sequence} is not the one that was noted: the log was written anew"
            if self.broken:
                return False
            self.sequence, self.hash = entry.sequence, entry.hash
        return True

    def _missing(self, newest: int) -> str:
        if newest <= self.sequence:
            return f"entry {newest} is not the one that the service wrote"
        return f"entries from {self.sequence + 1} to {newest} are missing: the log was cut short"

    def end(self) -> bool:
        """Say that no entry follows; False when the one that was noted has not come."""
        if self.broken is None and self._noted and self.sequence < self._noted[0]:
            self.broken = self._missing(self._noted[0])
        return self.broken is None


class _Writes(Protocol):
    def write(self, change: Callable[[Transaction], None]) -> None: ...


class _Refusal(NamedTuple):
    at: float
    who: str
    address: str
    call: str
    status: int
    detail: str


class Refusals:
    """Notes refused calls in the background: no caller waits for it, and no flood of them fills the database."""

    def __init__(self, writer: _Writes, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._rate = RateLimit(NOTED_PER_SECOND, NOTED_AT_ONCE / NOTED_PER_SECOND)
        self._noted: deque[_Refusal] = deque()
        self._unnamed = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="refusals", daemon=True)
        self._thread.start()

    def note(self, who: str, address: str, call: str, status: int, detail: str) -> None:
        """Remember one refused call, or only that there was one more."""
        with self._lock:
            room = len(self._noted) < NOTED_AT_ONCE and not self._rate.take("", self._clock.monotonic())
            if room:
                self._noted.append(_Refusal(self._clock.wall(), who, address, call, status, detail))
            else:
                self._unnamed += 1
        self._wake.set()

    def close(self) -> None:
        """Store what waits, then end."""
        self._ended.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wake.wait()
            self._wake.clear()
            flood = self._unnamed > 0
            self._store()
            self._ended.wait(PAUSE_IN_FLOOD_SECONDS if flood else PAUSE_SECONDS)
        self._store()

    def _store(self) -> None:
        with self._lock:
            noted, more = list(self._noted), self._unnamed
        if not noted and not more:
            return
        at = self._clock.wall()
        try:
            self._writer.write(lambda transaction: _record_all(transaction, noted, more, at))
        except InfoError as error:
            _log.warning("%d refused calls are not in the audit log yet: %s", len(noted) + more, error)
            self._wake.set()
            return
        with self._lock:
            for _ in noted:
                self._noted.popleft()
            self._unnamed -= more


def _record_all(transaction: Transaction, noted: list[_Refusal], more: int, at: float) -> None:
    for refusal in noted:
        record(transaction, *refusal)
    if more:
        record(transaction, at, "", "", "", 429, f"and {more} more refused calls")
