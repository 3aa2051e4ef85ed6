"""Wakes the submitter when a task is new, is to be stopped, or may go on, so that it need not look all the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.tasks import TaskState
from infosvc.wire.tunnel.tunnel_end import TunnelCalls

AGAIN_SECONDS = 5.0
"""Between two attempts at hearing events; meanwhile nothing wakes the submitter but its own clock."""
TUNNEL_SECONDS = 5.0
"""How long one call waits for a tunnel."""
ASK_SECONDS = 1.0
"""Between two such calls: one is answered at once while a tunnel waits, or too many callers."""
LEAST_SECONDS = 0.1
"""Between two turns, however much happens."""


class Waker:
    """Hears what happens to tasks, in threads of its own."""

    def __init__(self, client: InfoClient, calls: TunnelCalls) -> None:
        """`client` and its `calls` are for its threads alone."""
        self._client = client
        self._calls = calls
        self._due = threading.Event()
        self._closing = threading.Event()
        self._seen: set[str] = set()
        for hear in (self._hear_of_tasks, self._hear_of_tunnels):
            threading.Thread(target=self._keep, args=(hear,), name="waking", daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Until something is to be done for a task, at most so many seconds."""
        time.sleep(LEAST_SECONDS)
        self._due.wait(seconds - LEAST_SECONDS)
        self._due.clear()

    def close(self) -> None:
        """Hear no more: each thread ends with what it hears next."""
        self._closing.set()

    def _keep(self, hear: Callable[[], None]) -> None:
        while not self._closing.is_set():
            try:
                hear()
            except InfoError:
                self._closing.wait(AGAIN_SECONDS)

    def _hear_of_tasks(self) -> None:
        with self._client.events(types=["task"]) as events:
            for event in events:
                if self._closing.is_set():
                    return
                if event.type != "task" or is_urgent(event.data):  # else events were missed
                    self._due.set()

    def _hear_of_tunnels(self) -> None:
        begun = time.monotonic()
        waiting = {tunnel.tunnel_id for tunnel in self._calls.waiting(seconds=TUNNEL_SECONDS)}
        if waiting - self._seen:  # others the submitter knows; its clock has it call their runners again
            self._due.set()
        self._seen = waiting
        self._closing.wait(max(0.0, begun + ASK_SECONDS - time.monotonic()))


def is_urgent(task: Mapping[str, Any]) -> bool:
    """Whether what an event says of a task is something to do for the submitter."""
    state = TaskState(task["state"])
    return state is TaskState.QUEUED or bool(task["stop_asked"] and not state.is_final)
