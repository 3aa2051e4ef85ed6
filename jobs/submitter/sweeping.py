"""Deletes what forgotten tasks have left in HDFS: what they printed, and why they ran where they ran."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Protocol

from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient

PAUSE_SECONDS = 10.0
"""Between two looks."""
MOST_AT_ONCE = 100
"""Of one look, so that tasks which are to begin do not wait for it."""


class Files(Protocol):
    """What is needed of HDFS."""

    def forget(self, task_id: str) -> None:
        """Delete the folder of a task; HadoopError."""


class Sweeper:
    """Works in the thread that submits tasks, so that none begins under the id of one whose files are deleted."""

    def __init__(self, client: InfoClient, files: Files, say: Callable[[str], None]) -> None:
        self._client = client
        self._files = files
        self._say = say
        self._next = 0.0
        self._troubles = set[str]()

    def sweep(self) -> None:
        """Delete what is to go, if it is time to look. InfoError; what HDFS refuses is said once and tried again."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PAUSE_SECONDS
        troubles = set[str]()
        gone = self._client.gone_tasks()
        for task_id in random.sample(gone, min(MOST_AT_ONCE, len(gone))):  # lest the same are refused each time
            try:
                self._files.forget(task_id)
            except HadoopError as error:
                troubles.add(f"the files of a task that was forgotten are still in HDFS: {error}")
            else:
                self._client.confirm_gone(task_id)
        for text in sorted(troubles - self._troubles):
            self._say(text)
        self._troubles = troubles
