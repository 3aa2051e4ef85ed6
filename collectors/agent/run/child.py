"""One run of a command: a process in a session of its own, with its output captured up to a limit."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from collectors.agent.run.guard import Guard, kill_group
from collectors.agent.run.marked import kill_marked
from collectors.agent.run.outcome import OUTPUT_LIMIT

COMPLAINT_LIMIT = 4096  # bytes kept of stderr: its end
FLOOD_BYTES = 1024 * 1024  # of stderr; then the run is ended
_CHUNK = 16 * 1024


class Child:
    """Starts at once; `finished` is asked when one of `descriptors` can be read; nothing of its group outlives it.

    `descriptors` are passed on to the process; `before` is called in the new process, ahead of its command.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        guard: Guard,
        descriptors: Sequence[int] = (),
        before: Callable[[], None] | None = None,
    ) -> None:
        self._state_dir = Path(environment["STATE_DIR"])
        self._guard = guard
        self._unwanted = self._killed = False
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._state_dir,
            env=environment,
            start_new_session=True,
            pass_fds=descriptors,
            preexec_fn=before,
        )
        guard.watch(self._process.pid)
        self._ended = os.pidfd_open(self._process.pid)
        self._stdout, self._stderr = _stream(self._process.stdout), _stream(self._process.stderr)
        self._open = {self._stdout, self._stderr}
        self._printed, self._complained = bytearray(), bytearray()
        self._complaint_bytes = 0

    @property
    def descriptors(self) -> list[int]:
        """What to wait for: each can be read when there is something for `finished` to do."""
        return [self._ended, *(stream.fileno() for stream in self._open)]

    def has_finished(self) -> bool:
        """True once the process has ended; then its group is killed, its output complete and its status known."""
        self._drain()
        if self._floods() and not self._killed:
            self.kill()
        # WNOWAIT leaves the dead leader in place, so its group's number cannot be given to others before the kill.
        if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
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
        return int(self._process.returncode)

    @property
    def stdout(self) -> bytes:
        """At most one byte more than the limit, which tells that there was more."""
        return bytes(self._printed)

    @property
    def stderr(self) -> bytes:
        """The end of what was complained."""
        return bytes(self._complained)

    def _close(self) -> None:
        kill_group(self._process.pid, signal.SIGKILL)
        if self._unwanted:  # then it may have left its group, too; looking for that is too slow for every run
            kill_marked([str(self._state_dir)])
        self._process.wait()
        self._guard.release(self._process.pid)
        self._drain()
        if self._floods():
            self._complained += b"\nended because it printed too much"
        self._open.clear()
        for stream in (self._stdout, self._stderr):
            stream.close()
        os.close(self._ended)

    def _floods(self) -> bool:
        """Whether it prints so much that reading on would only cost time."""
        return len(self._printed) > OUTPUT_LIMIT or self._complaint_bytes > FLOOD_BYTES

    def _drain(self) -> None:
        for stream in list(self._open):
            if not self._read(stream):
                self._open.discard(stream)

    def _read(self, stream: IO[bytes]) -> bool:
        """Take what is there without waiting; False at its end."""
        for _ in range(8):  # at most two pipes full, then other slots have their turn
            try:
                chunk = os.read(stream.fileno(), _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._keep(stream, chunk)
        return True

    def _keep(self, stream: IO[bytes], chunk: bytes) -> None:
        if stream is self._stdout:
            self._printed += chunk
            del self._printed[OUTPUT_LIMIT + 1 :]
            return
        self._complaint_bytes += len(chunk)
        self._complained += chunk
        del self._complained[:-COMPLAINT_LIMIT]


def _stream(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101 - it is a pipe, which mypy cannot know
    os.set_blocking(pipe.fileno(), False)
    return pipe
