"""A tiny process beside the agent that ends the agent's runs when the agent itself was killed with SIGKILL."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


class Guard:
    """Told of each run's process group as it starts and ends; acts when the pipe to the agent breaks."""

    def __init__(self, pipe: int, pid: int) -> None:
        self._pipe = pipe
        self._pid = pid

    @classmethod
    def start(cls, state_dir: Path) -> Guard:
        """Fork the guard; call it before the process has threads."""
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                _stand_apart(read_end)
                _watch(state_dir)
            finally:
                os._exit(0)
        os.close(read_end)
        return cls(write_end, pid)

    def watch(self, group: int) -> None:
        """A run has started in this process group."""
        self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        """Nothing of this process group is left."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the guard end whatever it still watches, and wait for that: a later agent's runs bear the same mark."""
        os.close(self._pipe)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _tell(self, line: str) -> None:
        # Without its guard the agent works on: each run still gets SIGKILL from the kernel when the agent dies.
        with suppress(BrokenPipeError):
            os.write(self._pipe, line.encode())


def kill_group(group: int, number: int) -> None:
    """Signal a process group; one that is gone already is no error."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def kill_marked(state_dir: Path) -> None:
    """SIGKILL every process whose STATE_DIR is at or below this directory: what left its group with setsid, too."""
    marks = (f"STATE_DIR={state_dir}\0".encode(), f"STATE_DIR={state_dir}/".encode())
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            environment = b"\0" + (entry / "environ").read_bytes()
            if any(b"\0" + mark in environment for mark in marks):
                os.kill(int(entry.name), signal.SIGKILL)


def _stand_apart(read_end: int) -> None:
    """Leave the agent's session and files, so that neither its signals nor its sockets are shared."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.dup2(read_end, 0)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _watch(state_dir: Path) -> None:
    groups: set[int] = set()
    with os.fdopen(0) as lines:
        for line in lines:  # ends when the agent is gone and the kernel has closed its end
            (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        kill_group(group, signal.SIGKILL)
    kill_marked(state_dir)
