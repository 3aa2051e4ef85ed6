"""Work that nobody waits for, in a thread of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Aside:
    """Does one thing after the other. The thread is there while there is work, and ends with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._is_running = False

    def do(self, work: Callable[[], T]) -> Future[T]:
        """Do it after what was asked for before; what it returns or raises comes later."""
        future: Future[T] = Future()
        with self._lock:
            self._waiting.append((work, future))
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="aside", daemon=True).start()
        return future

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            work, future = taken
            try:
                future.set_result(work())
            except Exception as error:
                print(f"{error!r} in what is done aside", flush=True)  # whoever asked may not look
                future.set_exception(error)

    def _take(self) -> tuple[Callable[[], Any], Future[Any]] | None:
        with self._lock:
            self._is_running = bool(self._waiting)
            return self._waiting.popleft() if self._waiting else None
