"""One run of a command: a process in a session of its own, with its output captured up to a limit."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from collectors.agent.guard import Guard, kill_group, kill_marked
from collectors.agent.outcome import OUTPUT_LIMIT

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_CHUNK = 16 * 1024


class Child:
    """Starts at once; `finished` is asked again and again; nothing of its process group outlives `finished`."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], guard: Guard) -> None:
        agent = os.getpid()
        self._state_dir = Path(environment["STATE_DIR"])
        self._guard = guard
        self._unwanted = False
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._state_dir,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: _die_with(agent),
        )
        guard.watch(self._process.pid)
        self._output: dict[IO[bytes], bytearray] = {}
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None  # noqa: S101 - both are pipes, which mypy cannot know
            os.set_blocking(stream.fileno(), False)
            self._output[stream] = bytearray()

    def finished(self) -> bool:
        """True once the process has ended; then its group is killed, its output complete and its status known."""
        for stream in self._output:
            self._read(stream)
        # WNOWAIT leaves the dead leader in place, so its group's number cannot be given to others before the kill.
        if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return False
        self._close()
        return True

    def terminate(self) -> None:
        """Ask the whole process group to end."""
        self._unwanted = True
        kill_group(self._process.pid, signal.SIGTERM)

    def end(self) -> None:
        """Kill the run now and wait for it."""
        self._unwanted = True
        self._close()

    def _close(self) -> None:
        kill_group(self._process.pid, signal.SIGKILL)
        if self._unwanted:  # then it may have left its group, too; looking for that is too slow for every run
            kill_marked(self._state_dir)
        self._process.wait()
        self._guard.release(self._process.pid)
        for stream in self._output:
            self._read(stream)
            stream.close()

    @property
    def status(self) -> int:
        """Exit status, negative for a signal; only after `finished`."""
        return int(self._process.returncode)

    @property
    def stdout(self) -> bytes:
        """At most one byte more than the limit, which tells that there was more."""
        return bytes(next(iter(self._output.values())))

    @property
    def stderr(self) -> bytes:
        """The end of what was complained."""
        return bytes(list(self._output.values())[1])

    def _read(self, stream: IO[bytes]) -> None:
        """Take what is there without waiting; a chatty process is drained, its output cut."""
        kept = self._output[stream]
        for _ in range(8):  # at most two pipes full, then other slots have their turn
            try:
                chunk = os.read(stream.fileno(), _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                return
            kept += chunk
            if stream is self._process.stdout:
                del kept[OUTPUT_LIMIT + 1 :]
            else:
                del kept[:-OUTPUT_LIMIT]


def _die_with(agent: int) -> None:
    """In the new process: ask the kernel for SIGKILL when the agent dies, or end if it is dead already."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != agent:
        os._exit(1)
