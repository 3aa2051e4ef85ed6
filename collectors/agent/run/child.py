"""One run of a command: a process in a session of its own, with its output captured up to a limit."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from collectors.agent.run.guard import Guard, kill_group
from collectors.agent.run.marked import kill_marked
from collectors.agent.run.outcome import OUTPUT_LIMIT
from collectors.agent.run.process import Process

COMPLAINT_LIMIT = 4096  # bytes kept of stderr: its end
FLOOD_BYTES = 1024 * 1024  # of stderr; then the run is ended
_CHUNK = 16 * 1024


class Child:
    """Starts at once; `finished` is asked when one of `descriptors` can be read; nothing of its group outlives it.

    `start` gets the descriptors that its process is to print and to complain to; its STATE_DIR is `state_dir`.
    """

    def __init__(self, start: Callable[[int, int], Process], state_dir: Path, guard: Guard) -> None:
        self._state_dir = state_dir
        self._guard = guard
        self._unwanted = self._killed = False
        self._status: int | None = None
        with _Pipe() as printed, _Pipe() as complained:
            self._process = start(printed.write_end, complained.write_end)
            self._stdout, self._stderr = printed.keep(), complained.keep()
        guard.watch(self._process.pid)
        self._open = {self._stdout, self._stderr}
        self._printed, self._complained = bytearray(), bytearray()
        self._complaint_bytes = 0

    @property
    def descriptors(self) -> list[int]:
        """What to wait for: each can be read when there is something for `finished` to do."""
        return [self._process.descriptor, *self._open]

    def has_finished(self) -> bool:
        """True once the process has ended; then its group is killed, its output complete and its status known."""
        self._drain()
        if self._floods() and not self._killed:
            self.kill()
        if not self._process.has_ended():
            return False
        self._close()
        return True

    def terminate(self) -> None:
        """Ask the whole process group to end."""
        self._unwanted = True
        kill_group(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the whole group; `finished` tells when it is gone: what hangs in the kernel can take for ever."""
        self._unwanted = self._killed = True
        kill_group(self._process.pid, signal.SIGKILL)

    @property
    def status(self) -> int:
        """Exit status, negative for a signal; only after `finished`."""
        assert self._status is not None  # noqa: S101 - it is known by then, which mypy cannot know
        return self._status

    @property
    def stdout(self) -> bytes:
        """At most one byte more than the limit, which tells that there was more."""
        return bytes(self._printed)

    @property
    def stderr(self) -> bytes:
        """The end of what was complained."""
        return bytes(self._complained)

    def _close(self) -> None:
        if not self._process.is_lost:
            kill_group(self._process.pid, signal.SIGKILL)
        # What is unwanted may have left its group, too; looking for that is too slow for every run.
        if self._unwanted or self._process.is_lost:
            kill_marked([str(self._state_dir)])
        self._status = self._process.reap()
        self._guard.release(self._process.pid)
        self._drain()
        if self._floods():
            self._complained += b"\nended because it printed too much"
        self._open.clear()
        for stream in (self._stdout, self._stderr):
            os.close(stream)

    def _floods(self) -> bool:
        """Whether it prints so much that reading on would only cost time."""
        return len(self._printed) > OUTPUT_LIMIT or self._complaint_bytes > FLOOD_BYTES

    def _drain(self) -> None:
        for stream in list(self._open):
            if not self._read(stream):
                self._open.discard(stream)

    def _read(self, stream: int) -> bool:
        """Take what is there without waiting; False at its end."""
        for _ in range(8):  # at most two pipes full, then other slots have their turn
            try:
                chunk = os.read(stream, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._keep(stream, chunk)
        return True

    def _keep(self, stream: int, chunk: bytes) -> None:
        if stream == self._stdout:
            self._printed += chunk
            del self._printed[OUTPUT_LIMIT + 1 :]
            return
        self._complaint_bytes += len(chunk)
        self._complained += chunk
        del self._complained[:-COMPLAINT_LIMIT]


class _Pipe:
    """A pipe of which nothing is left after the block, but the read end if it was kept."""

    def __enter__(self) -> _Pipe:
        self._read_end, self.write_end = os.pipe()
        self._kept = False
        return self

    def keep(self) -> int:
        """The read end, which does not block."""
        self._kept = True
        os.set_blocking(self._read_end, False)
        return self._read_end

    def __exit__(self, *_: object) -> None:
        os.close(self.write_end)
        if not self._kept:
            os.close(self._read_end)
