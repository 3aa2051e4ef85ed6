"""Tells the information service how far a task is, beside the work: nothing waits for the service."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from infosvc.wire.errors import Forbidden, InfoError, InvalidInput, NotFound, Unauthorized
from infosvc.wire.tasks import TaskProgress

AGAIN_SECONDS = 5.0
"""Between two attempts at a service that does not answer, or does not know yet that this start has begun."""
FOR_GOOD = (Forbidden, InvalidInput, NotFound, Unauthorized)


class Telling:
    """Tells all of a start's progress, again whenever something of it differs.

    What a service that is away has missed it hears as soon as it is back, all but what was overtaken meanwhile. Once
    the service refuses for good, it hears no more.
    """

    def __init__(self, tell: Callable[[TaskProgress], object], begun: TaskProgress) -> None:
        self._tell = tell
        self._now = begun
        self._changing = threading.Lock()
        self._due = threading.Event()
        self._due.set()
        self._closing = threading.Event()
        threading.Thread(target=self._run, name="telling", daemon=True).start()

    def close(self) -> None:
        """Tell nothing more."""
        self._closing.set()
        self._due.set()

    def change(self, **differs: Any) -> None:
        """Tell other values of these fields of TaskProgress from now on."""
        with self._changing:
            self._now = replace(self._now, **differs)
        self._due.set()

    def _run(self) -> None:
        while self._due.wait() and not self._closing.is_set():
            self._due.clear()
            try:
                self._tell(self._now)
            except FOR_GOOD as error:
                print(f"the information service does not hear how far the task is: {error}", flush=True)
                return
            except InfoError:
                self._closing.wait(AGAIN_SECONDS)
                self._due.set()
