"""Wakes the submitter when a task is new, is to be stopped, or may go on, so that it need not look all the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.tasks import TaskState

AGAIN_SECONDS = 5.0
"""Between two attempts at hearing events; meanwhile nothing wakes the submitter but its own clock."""
LEAST_SECONDS = 0.1
"""Between two turns, however much happens."""


class Waker:
    """Hears what happens to tasks, in a thread of its own."""

    def __init__(self, client: InfoClient) -> None:
        """`client` is for this thread alone."""
        self._client = client
        self._due = threading.Event()
        threading.Thread(target=self._keep, name="waking", daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Until something is to be done for a task, at most so many seconds."""
        time.sleep(LEAST_SECONDS)
        self._due.wait(seconds - LEAST_SECONDS)
        self._due.clear()

    def _keep(self) -> None:
        while True:
            try:
                with self._client.events(types=["task"]) as events:
                    for event in events:
                        if event.type != "task" or is_urgent(event.data):  # else events were missed
                            self._due.set()
            except InfoError:
                time.sleep(AGAIN_SECONDS)


def is_urgent(task: Mapping[str, Any]) -> bool:
    """Whether what an event says of a task is something to do for the submitter."""
    state = TaskState(task["state"])
    return state is TaskState.QUEUED or bool(task["stop_asked"] and not state.is_final)
