"""Notes what a task's program uses, as values by time: cores, memory, disk, network, processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from boxes.box import Box, Use
from jobs.kinds.task.reported import note

EVERY_SECONDS = 5.0
IDLE_CORES, IDLE_SECONDS = 0.05, 600.0
"""A program is idle that has used less than so many cores at each look for so long."""
USED = "used"
"""The stream of these notes, as `values` is that of what is reported. Their step is their time in EVERY_SECONDS."""


class Using:
    """Looks at a box that has started until `close`; `keep` gets the notes.

    `mark` hears since when, in Unix seconds, the program uses none of its cores, and None as soon as it does again.
    """

    def __init__(self, box: Box, keep: Callable[[bytes], None], mark: Callable[[float | None], None]) -> None:
        self._box = box
        self._keep = keep
        self._mark = mark
        self._busy_at: float | None = None
        self._is_idle = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="using", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join(EVERY_SECONDS)

    def _run(self) -> None:
        before, since = Use(0.0, 0, 0, 0, 0, 0, 0), time.monotonic()
        while not self._ended.wait(EVERY_SECONDS):
            with suppress(OSError):
                if (now := self._box.use()) is not None:
                    at = time.monotonic()
                    self._keep(notes(before, now, at - since, time.time()))
                    self._judge(now.cpu_seconds - before.cpu_seconds, at - since, at)
                    before, since = now, at

    def _judge(self, cpu_seconds: float, seconds: float, at: float) -> None:
        """Mark the program when it has used next to nothing for so long; by the monotonic clock."""
        if self._busy_at is None or cpu_seconds >= IDLE_CORES * seconds:
            self._busy_at = at
        is_idle = at - self._busy_at >= IDLE_SECONDS
        if is_idle != self._is_idle:
            self._is_idle = is_idle
            self._mark(time.time() - (at - self._busy_at) if is_idle else None)


def notes(before: Use, now: Use, seconds: float, at: float) -> bytes:
    """What was used in so many seconds; `at` is the moment in Unix seconds. What cannot be told has no note."""
    step = int(at // EVERY_SECONDS)
    values = {
        "cpu_cores": max(0.0, now.cpu_seconds - before.cpu_seconds) / seconds,
        "memory_bytes": float(now.memory_bytes),
        "read_bytes_per_second": max(0, now.read_bytes - before.read_bytes) / seconds,
        "written_bytes_per_second": max(0, now.written_bytes - before.written_bytes) / seconds,
        "received_bytes_per_second": _rate(before.received_bytes, now.received_bytes, seconds),
        "sent_bytes_per_second": _rate(before.sent_bytes, now.sent_bytes, seconds),
        "processes": float(now.processes),
    }
    return b"".join(note(at, name, step, round(value, 3)) for name, value in values.items() if value is not None)


def _rate(before: int | None, now: int | None, seconds: float) -> float | None:
    """By second; None where one of the two is not known."""
    return None if before is None or now is None else max(0, now - before) / seconds
