"""Waiting for a task to end, also while the service is away for a moment."""

from __future__ import annotations

import math
import sys
import time

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import AWAY, InfoError
from infosvc.wire.tasks import Task

LOOK_SECONDS = 1.0  # between two looks
PATIENCE_SECONDS = 120.0
"""How long a service may be away: it starts again without harm to tasks."""


class Patience:
    """Bears with a service that is away, for so many seconds at a time; the user is told once each time."""

    def __init__(self, seconds: float = PATIENCE_SECONDS) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def renew(self) -> None:
        """The service has answered."""
        self._since = None

    def begin_again(self) -> None:
        """It has said something, though not all: the time begins anew, and the user is not told again."""
        if self._since is not None:
            self._since = time.monotonic()

    def bear(self, error: InfoError) -> None:
        """The service has not answered; the error is raised when that has been so for too long."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            print(f"still waiting: {error}", file=sys.stderr)
        elif now - self._since > self._seconds:
            raise error


def follow(client: InfoClient, task_id: str) -> Task:
    """The task once it has ended; what goes wrong at the first look is raised, later only what does not pass.

    Who waits for a task waits for its service as well, however long that is away.
    """
    task, patience = client.task(task_id), Patience(math.inf)
    while not task.state.is_final:
        time.sleep(LOOK_SECONDS)
        try:
            task = client.task(task_id)
            patience.renew()
        except AWAY as error:
            patience.bear(error)
    return task


def sentence(task: Task) -> str:
    """How a task ended, and why."""
    said = task.reason or (f"exit code {task.exit_code}" if task.exit_code else "")
    return f"{task.task_id} {task.state}" + (f": {said}" if said else "")
