"""Tasks from a program or a notebook.

>>> from nodewise import tasks                                              # doctest: +SKIP
>>> task = tasks.submit(["python3", "train.py"], folder="src")              # doctest: +SKIP
>>> task.wait().state, task.log()                                           # doctest: +SKIP
(<TaskState.SUCCEEDED: 'succeeded'>, 'epoch 1\\n')
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infosvc.wire.client import InfoClient
from infosvc.wire.service_options import CA_FILE, TOKEN_FILE, URL, ServiceAddress
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState
from jobs.commands.asking.task_printed import read
from jobs.commands.asking.task_sending import send
from jobs.commands.asking.task_waiting import follow

__all__ = ["SubmittedTask", "Task", "TaskSpec", "TaskState", "submit"]

HOME = "NODEWISE_HOME"


class SubmittedTask:
    """A task of the service: every call asks anew, and raises an InfoError when that fails."""

    def __init__(self, task_id: str, client: InfoClient | None = None) -> None:
        self.task_id = task_id
        self._client = client or _client()

    def __repr__(self) -> str:
        return f"SubmittedTask({self.task_id!r})"

    def look(self) -> Task:
        """How far it is, where, and why."""
        return self._client.task(self.task_id)

    def wait(self) -> Task:
        """Wait until it has ended, also while the service is away for a moment."""
        return follow(self._client, self.task_id)

    def log(self, stream: str = "stdout") -> str:
        """What the last start of its program has printed until now."""
        return "".join(one.text for one in read(self._client, self.task_id, None, False) if one.stream == stream)

    def stop(self) -> Task:
        """Stop it: at once if no submitter has taken it, else as soon as YARN has ended it."""
        return self._client.stop_task(self.task_id)

    def again(self) -> SubmittedTask:
        """A new task that does the same."""
        return SubmittedTask(self._client.task_again(self.task_id).task_id, self._client)


def submit(
    argv: Sequence[str], *, folder: str | Path | None = None, client: InfoClient | None = None, **spec: Any
) -> SubmittedTask:
    """Ask for a program to be run once on the cluster, with the files of a folder beside it.

    `spec` are fields of TaskSpec, such as name, memory_mb, variables, output or after. The client is by default the one
    that commands use, by NODEWISE_URL, NODEWISE_TOKEN_FILE and NODEWISE_CA_FILE. InfoError when the service refuses,
    JobError when the folder cannot go along.
    """
    client = client or _client()
    along = send(client, None if folder is None else Path(folder))
    return SubmittedTask(client.submit_task(TaskSpec(tuple(argv), **along, **spec)).task_id, client)


def _client() -> InfoClient:
    """The client of the commands' own defaults."""
    said = {one.flag: os.environ.get(one.variable, one.default) for one in (URL, TOKEN_FILE, CA_FILE)}
    token_file, ca_file = (Path(text) if text else None for text in (said[TOKEN_FILE.flag], said[CA_FILE.flag]))
    home = Path(os.environ.get(HOME, "~/.nodewise")).expanduser().absolute()
    return ServiceAddress(str(said[URL.flag]), token_file, ca_file).client(home)
