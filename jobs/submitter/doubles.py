"""Ends a second application of a task, which a submitter may have given to YARN that stood still in its last step."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.tasks import Task
from jobs.kinds.task.request import tagged_task

PAUSE_SECONDS = 10.0
"""Between two looks."""
WHY = "its task has another application"


class Applications(Protocol):
    """What is needed of YARN; errors are HadoopError."""

    def alive(self) -> list[Application]:
        """Those that have not ended."""

    def kill(self, application_id: str, why: str = "") -> None:
        """End one; its diagnostics tell why."""

    def clean(self, application_id: str) -> None:
        """Take the files of one away."""


class Doubles:
    """Works in the thread that submits tasks, so that what it sees of YARN and of the service fits together."""

    def __init__(self, client: InfoClient, cluster: Applications, say: Callable[[str], None]) -> None:
        self._client = client
        self._cluster = cluster
        self._say = say
        self._next = 0.0

    def end(self) -> None:
        """End what is a second one, if it is time to look. InfoError; what YARN refuses is tried again."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PAUSE_SECONDS
        with suppress(HadoopError):  # which the next turn tells
            for task_id, applications in self._by_task().items():
                with suppress(NotFound):  # it is a task of another service
                    self._end_of(self._client.task(task_id), applications)

    def _by_task(self) -> dict[str, list[Application]]:
        """Those that have not ended, by the task that each is of; only of tasks that have several."""
        found: dict[str, list[Application]] = defaultdict(list)
        for one in self._cluster.alive():
            if task_id := tagged_task(one.tags):
                found[task_id].append(one)
        return {task_id: applications for task_id, applications in found.items() if len(applications) > 1}

    def _end_of(self, task: Task, applications: Sequence[Application]) -> None:
        """The one that the service knows goes on; when it knows none of them, all do until it does."""
        if task.application_id not in [one.application_id for one in applications]:
            return
        for one in applications:
            if one.application_id != task.application_id:
                self._say(f"{one.application_id} is ended, since {task.task_id} is {task.application_id}")
                self._cluster.kill(one.application_id, WHY)
                self._cluster.clean(one.application_id)
