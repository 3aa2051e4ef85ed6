"""Calls that change nothing and leave a line in the audit log: refused ones, log-ins and log-outs."""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from infosvc.access.audit import AuditLog
from infosvc.access.rate_limit import RateLimit
from infosvc.settings import Clock
from infosvc.state.transaction import Transaction
from infosvc.wire.errors import InfoError

# A flood of one caller leaves a few lines a minute, the rest as one number; so does a flood of many strangers.
NOTED_PER_SECOND = 0.5
NOTED_AT_ONCE = 20
STRANGERS_PER_SECOND = 2.0
STRANGERS_AT_ONCE = 200
MOST_SUMS = 20  # callers of one kind whose numbers are told apart
PAUSE_SECONDS = 1.0
PAUSE_IN_FLOOD_SECONDS = 10.0

_REFUSED, _OTHERS = "refused calls", "log-ins and log-outs"
_log = logging.getLogger(__name__)


class _Writes(Protocol):
    def write(self, change: Callable[[Transaction], None]) -> None: ...


class _Call(NamedTuple):
    at: float
    who: str
    address: str
    call: str
    status: int
    detail: str


class _Sum(NamedTuple):
    """Whose calls are counted together, and which; who is empty for strangers, address for all that are left over."""

    who: str
    address: str
    what: str


class NotedCalls:
    """Notes calls in the background: no caller waits for it, and no flood of them fills the database.

    Each address of strangers has a bucket, and each token, so nobody hides the calls of another in a flood.
    """

    def __init__(self, writer: _Writes, clock: Clock, log: AuditLog) -> None:
        self._writer = writer
        self._clock = clock
        self._log = log
        self._rate = RateLimit(NOTED_PER_SECOND, NOTED_AT_ONCE / NOTED_PER_SECOND)
        self._strangers = RateLimit(STRANGERS_PER_SECOND, STRANGERS_AT_ONCE / STRANGERS_PER_SECOND)
        self._waiting: deque[_Call] = deque()
        self._sums: Counter[_Sum] = Counter()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="noted", daemon=True)
        self._thread.start()

    def note(self, who: str, address: str, call: str, status: int, detail: str, token_id: str = "") -> None:
        """Remember one call, or only that there was one more; `token_id` is empty for a caller without a good token."""
        one = _Call(self._clock.wall(), who, address, call, status, detail)
        with self._lock:
            if self._has_room(one, token_id):
                self._waiting.append(one)
            else:
                self._count(one, who if token_id else "")
        self._wake.set()

    def close(self) -> None:
        """Store what waits, then end."""
        self._ended.set()
        self._wake.set()
        self._thread.join()

    def _has_room(self, one: _Call, token_id: str) -> bool:
        now = self._clock.monotonic()
        if len(self._waiting) >= STRANGERS_AT_ONCE * (2 if token_id else 1):  # the database is away
            return False
        if token_id:
            return not self._rate.take(f"token {token_id}", now)
        return not self._rate.take(_network(one.address), now) and not self._strangers.take("", now)

    def _count(self, one: _Call, who: str) -> None:
        what = _REFUSED if one.status >= 400 else _OTHERS
        exact = _Sum(who, _network(one.address), what)
        told_apart = sum(1 for each in self._sums if bool(each.who) == bool(who))
        self._sums[exact if exact in self._sums or told_apart < MOST_SUMS else _Sum(who, "", what)] += 1

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wake.wait()
            self._wake.clear()
            flood = bool(self._sums)
            self._store()
            self._ended.wait(PAUSE_IN_FLOOD_SECONDS if flood else PAUSE_SECONDS)
        self._store()

    def _store(self) -> None:
        with self._lock:
            noted, sums = list(self._waiting), dict(self._sums)
        if not noted and not sums:
            return
        at = self._clock.wall()
        try:
            self._writer.write(lambda transaction: self._record(transaction, noted, sums, at))
        except InfoError as error:
            missing = len(noted) + sum(sums.values())
            _log.warning("%d calls are not in the audit log yet: %s", missing, error)
            self._wake.set()
            return
        with self._lock:
            for _ in noted:
                self._waiting.popleft()
            self._sums -= Counter(sums)

    def _record(self, transaction: Transaction, noted: list[_Call], sums: dict[_Sum, int], at: float) -> None:
        for one in noted:
            self._log.record(transaction, *one)
        for (who, address, what), more in sums.items():
            status = 429 if what == _REFUSED else 204
            self._log.record(transaction, at, who, address, "", status, f"and {more} more {what}")


def _network(address: str) -> str:
    """What one caller may have at will: one IPv4 address, but 2^64 of IPv6.

    >>> _network("2001:db8::1"), _network("10.0.0.1")
    ('2001:db8::/64', '10.0.0.1')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), strict=False))
