"""What an agent sends to another node that measures the way between the two: bytes of its own making, and few."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs

from infosvc.wire.errors import InvalidInput, TooManyRequests

PATH = "/api/v1/probe"
MOST_BYTES = 1024 * 1024  # of one answer
BUDGET_BYTES = 16 * 1024 * 1024  # of all answers within a minute
SLOWEST_BYTES_PER_SECOND = 512 * 1024  # at which a caller may take an answer: BUDGET_BYTES in 32 seconds
CHUNK_BYTES = 64 * 1024
_MINUTE_SECONDS = 60.0


class Busy(TooManyRequests):
    """No probe now; `retry_after` whole seconds until there may be one."""

    def __init__(self, message: str, wait_seconds: float, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after = max(1, math.ceil(wait_seconds))


class Probes:
    """The limits of all probes of one agent, whoever asks: one at a time, and BUDGET_BYTES a minute.

    Anybody may ask, because no node knows a secret of another; so this must cost a node next to nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._one = threading.Lock()
        self._left = float(BUDGET_BYTES)
        self._filled = clock()

    @contextmanager
    def grant(self, query: str) -> Iterator[int]:
        """How many bytes to send to who asks with this query, for as long as it takes.

        InvalidInput for a size that is not allowed, Busy while another probe is under way or the budget is spent.
        """
        size = _size(query)
        if not self._one.acquire(blocking=False):
            raise Busy("another probe is under way", 1.0, remedy="ask again later")
        try:
            self._spend(size)
            yield size
        finally:
            self._one.release()

    def _spend(self, size: int) -> None:
        now, a_second = self._clock(), BUDGET_BYTES / _MINUTE_SECONDS
        self._left = min(self._left + (now - self._filled) * a_second, BUDGET_BYTES)
        self._filled = now
        if size > self._left:
            raise Busy(
                f"probes have had their {BUDGET_BYTES} bytes of this minute",
                (size - self._left) / a_second,
                remedy="ask again later",
            )
        self._left -= size


def patience_seconds(size: int) -> float:
    """How long a caller may take for so many bytes: in proportion, so that nobody holds the only place for long."""
    return size / SLOWEST_BYTES_PER_SECOND


def chunks(size: int) -> Iterator[bytes]:
    """So many random bytes; made once and sent again and again, since making them takes longer than sending them."""
    chunk = os.urandom(min(size, CHUNK_BYTES))
    for start in range(0, size, CHUNK_BYTES):
        yield chunk[: min(CHUNK_BYTES, size - start)]


def _size(query: str) -> int:
    text = parse_qs(query).get("bytes", [""])[-1]
    # Few digits only: int() of very many is slow.
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 0 < int(text) <= MOST_BYTES):
        raise InvalidInput(f"say how much to send: {PATH}?bytes=N with N from 1 to {MOST_BYTES}", "bytes")
    return int(text)
