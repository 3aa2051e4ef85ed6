"""Waiting for a task to end, also while the service is away for a moment."""

from __future__ import annotations

import time

import click

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotReady, TooManyRequests, Unreachable
from infosvc.wire.tasks import Task
from jobs.application.following import PATIENCE_SECONDS

LOOK_SECONDS = 1.0  # between two looks
AWAY = (Unreachable, NotReady, TooManyRequests)
"""What a service says, or does not, that is away for a moment."""


class Patience:
    """Bears with a service that is away, for PATIENCE_SECONDS at a time; the user is told once each time."""

    def __init__(self) -> None:
        self._since: float | None = None

    def renew(self) -> None:
        """The service has answered."""
        self._since = None

    def bear(self, error: InfoError) -> None:
        """The service has not answered; the error is raised when that has been so for too long."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            click.echo(f"still waiting: {error}", err=True)
        elif now - self._since > PATIENCE_SECONDS:
            raise error


def follow(client: InfoClient, task_id: str) -> Task:
    """The task once it has ended; what goes wrong at the first look is raised, later only what does not pass."""
    task = client.task(task_id)
    trouble = ""
    while not task.state.is_final:
        time.sleep(LOOK_SECONDS)
        try:
            task, trouble = client.task(task_id), ""
        except AWAY as error:
            if not trouble:
                click.echo(f"still waiting: {error}", err=True)
            trouble = str(error)
    return task


def sentence(task: Task) -> str:
    """How a task ended, and why."""
    said = task.reason or (f"exit code {task.exit_code}" if task.exit_code else "")
    return f"{task.task_id} {task.state}" + (f": {said}" if said else "")
