"""Bodies of requests while they come in: a slow one holds the thread that reads it until its caller goes away."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from infosvc.wire.errors import NotReady

PATIENCE_SECONDS = 2.0  # how long a body waits until another one is read


class BodyLimit:
    """Lets at most a quarter of the threads read bodies, most of them those of one caller, and some more wait.

    So readers always find a thread. Raises NotReady for a body that finds no place soon enough.
    """

    def __init__(self, threads: int) -> None:
        self._most = max(1, threads // 4)
        self._most_of_one = max(1, self._most * 3 // 4)
        self._most_waiting = threads * 3 // 8
        self._reading: Counter[str] = Counter()
        self._total = 0
        self._waiting = 0
        self._freed = threading.Condition()

    def read(self, caller: str, read: Callable[[], bytes]) -> bytes:
        """The body that `read` brings for a caller, named by token or address."""
        with self._freed:
            if not self._has_room(caller):
                self._wait(caller)
            self._reading[caller] += 1
            self._total += 1
        try:
            return read()
        finally:
            self._leave(caller)

    def _has_room(self, caller: str) -> bool:
        return self._total < self._most and self._reading[caller] < self._most_of_one

    def _wait(self, caller: str) -> None:
        self._waiting += 1
        try:
            found = self._waiting <= self._most_waiting and self._freed.wait_for(
                lambda: self._has_room(caller), PATIENCE_SECONDS
            )
        finally:
            self._waiting -= 1
        if not found:
            raise NotReady("too many bodies come in slowly", remedy="send fewer at the same time, or try again later")

    def _leave(self, caller: str) -> None:
        with self._freed:
            self._total -= 1
            self._reading[caller] -= 1
            if not self._reading[caller]:
                del self._reading[caller]
            if self._waiting:
                self._freed.notify_all()
