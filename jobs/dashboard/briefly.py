"""Answers that are remembered for a moment, so that many who look at a page cost one question."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

MOST_KEPT = 256
KEPT_SECONDS = 60.0
"""What is older helps nobody who waits, and would fill memory."""


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
        failure = answer.exception()
        if failure is not None:
            raise failure.with_traceback(None)  # else it would hold the frames of everybody who was told so
        found: T = answer.result()
        return found

    def _ask(self, key: Hashable, answer: Future[Any], ask: Callable[[], Any]) -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # whoever waits must hear of it, whatever it is
            answer.set_exception(bare(error))
        now = self._clock()
        with self._lock:
            self._asking.pop(key, None)
            self._kept.pop(key, None)
            self._kept[key] = answer, now
            for old in [one for one, (_, at) in self._kept.items() if now - at > KEPT_SECONDS]:
                del self._kept[old]
            while len(self._kept) > MOST_KEPT:  # the one that was asked for longest ago
                del self._kept[next(iter(self._kept))]


def bare(error: BaseException) -> BaseException:
    """A failure without the frames that led to it and to its causes, which hold whatever was read in them."""
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__cause__ or found.__context__
    return error
