"""Notes what a task's program uses, as values by time: cores, memory, disk, processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from boxes.box import Box, Use
from jobs.kinds.task.reported import note

EVERY_SECONDS = 5.0
USED = "used"
"""The stream of these notes, as `values` is that of what is reported. Their step is their time in EVERY_SECONDS."""


class Using:
    """Looks at a box that has started until `close`; `keep` gets the notes."""

    def __init__(self, box: Box, keep: Callable[[bytes], None]) -> None:
        self._box = box
        self._keep = keep
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="using", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join(EVERY_SECONDS)

    def _run(self) -> None:
        before, since = Use(0.0, 0, 0, 0, 0), time.monotonic()
        while not self._ended.wait(EVERY_SECONDS):
            with suppress(OSError):
                if (now := self._box.use()) is not None:
                    at = time.monotonic()
                    self._keep(notes(before, now, at - since, time.time()))
                    before, since = now, at


def notes(before: Use, now: Use, seconds: float, at: float) -> bytes:
    """What was used in so many seconds; `at` is the moment in Unix seconds."""
    step = int(at // EVERY_SECONDS)
    values = {
        "cpu_cores": max(0.0, now.cpu_seconds - before.cpu_seconds) / seconds,
        "memory_bytes": float(now.memory_bytes),
        "read_bytes_per_second": max(0, now.read_bytes - before.read_bytes) / seconds,
        "written_bytes_per_second": max(0, now.written_bytes - before.written_bytes) / seconds,
        "processes": float(now.processes),
    }
    return b"".join(note(at, name, step, round(value, 3)) for name, value in values.items())
