"""Waiting for a task to end, also while the service is away for a moment."""

from __future__ import annotations

import time

import click

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotReady, TooManyRequests, Unreachable
from infosvc.wire.tasks import Task

LOOK_SECONDS = 1.0  # between two looks
_AWAY = (Unreachable, NotReady, TooManyRequests)


def follow(client: InfoClient, task_id: str) -> Task:
    """The task once it has ended; what goes wrong at the first look is raised, later only what does not pass."""
    task = client.task(task_id)
    trouble = ""
    while not task.state.is_final:
        time.sleep(LOOK_SECONDS)
        try:
            task, trouble = client.task(task_id), ""
        except _AWAY as error:
            if not trouble:
                click.echo(f"still waiting: {error}", err=True)
            trouble = str(error)
    return task


def sentence(task: Task) -> str:
    """How a task ended, and why."""
    said = task.reason or (f"exit code {task.exit_code}" if task.exit_code else "")
    return f"{task.task_id} {task.state}" + (f": {said}" if said else "")
