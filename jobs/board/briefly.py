"""Answers that are remembered for a moment, so that many who look at a page cost one question."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

MOST_KEPT = 256


class Briefly:
    """Remembers what was answered, a failure too, for some seconds; then one caller asks again.

    Who comes meanwhile gets the answer before, at once: a daemon that hangs holds up one caller, not all. Where there
    is none before, all wait for the first.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[Hashable, tuple[Future[Any], float]] = {}
        self._asking: dict[Hashable, Future[Any]] = {}

    def get(self, key: Hashable, seconds: float, ask: Callable[[], T]) -> T:
        """The answer to `key`, not older than `seconds` unless it is being asked for; raises what `ask` raises."""
        with self._lock:
            kept, at = self._kept.get(key, (None, 0.0))
            if kept and self._clock() - at < seconds:
                mine, answer = False, kept
            elif key in self._asking:
                mine, answer = False, kept or self._asking[key]
            else:
                mine, answer = True, Future[Any]()
                self._asking[key] = answer
        if mine:
            self._ask(key, answer, ask)
        found: T = answer.result()
        return found

    def _ask(self, key: Hashable, answer: Future[Any], ask: Callable[[], Any]) -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # whoever waits must hear of it, whatever it is
            answer.set_exception(error)
        with self._lock:
            self._asking.pop(key, None)
            self._kept.pop(key, None)
            self._kept[key] = answer, self._clock()
            while len(self._kept) > MOST_KEPT:  # the one that was asked for longest ago
                del self._kept[next(iter(self._kept))]
