"""A tiny process beside the agent that ends the agent's runs when the agent itself was killed with SIGKILL."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from collectors.agent.run import marked

LOCK_SECONDS = 15.0
_LOCK = ".lock"
_POLL_SECONDS = 0.02
# The one thing it inherits: the mark of a test cluster, by which its shutdown finds every process it has.
_INHERITED = "NODEWISE_CLUSTER"

# A shell, because a second Python would cost a node several megabytes for as long as the agent lives. What the end of
# its input leaves in `groups` is killed; then PYTHON takes its place to look for what has left its group.
_SCRIPT = """
trap '' TERM INT HUP
groups=' '
while read -r sign group; do
    case $sign$groups in
        +*) groups="$groups$group " ;;
        -*" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;;
    esac
done
for group in $groups; do
    kill -KILL -- "-$group"
done
exec "$@"
"""


class Guard:
    """Told of each run's process group as it starts and ends; acts when the pipe to the agent breaks."""

    def __init__(self, pipe: int, process: subprocess.Popen[bytes]) -> None:
        self._pipe = pipe
        self._process = process

    @classmethod
    def start(cls, state_dir: Path) -> Guard:
        """Start the guard of a state directory.

        It waits until the guard of an agent before has done its work, which would else end this agent's runs, too;
        OSError when that agent still works.
        """
        lock = _take_lock(state_dir)
        read_end, write_end = os.pipe()
        try:
            return cls(write_end, _start_shell(state_dir, read_end, lock))
        finally:
            os.close(read_end)
            os.close(lock)

    def watch(self, group: int) -> None:
        """A run has started in this process group."""
        self._tell(f"+ {group}\n")

    def release(self, group: int) -> None:
        """Nothing of this process group is left."""
        self._tell(f"- {group}\n")

    def close(self) -> None:
        """Let the guard end whatever it still watches, and wait for that: a later agent's runs bear the same mark."""
        os.close(self._pipe)
        self._process.wait()

    def _tell(self, line: str) -> None:
        # Without its guard the agent works on: each run still gets SIGKILL from the kernel when the agent dies.
        with suppress(BrokenPipeError):
            os.write(self._pipe, line.encode())


def kill_group(group: int, number: int) -> None:
    """Signal a process group; one that is gone already is not an error."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _start_shell(state_dir: Path, read_end: int, lock: int) -> subprocess.Popen[bytes]:
    """The shell in a session of its own, so that it shares neither signals nor sockets with the agent.

    It keeps the lock. The text of the last program goes with it: by then the agent's file may be another one.
    """
    search = [sys.executable, "-I", "-S", "-c", _source(), str(state_dir)]
    return subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, "guard", *search],
        stdin=read_end,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={key: value for key, value in os.environ.items() if key.startswith(_INHERITED)},
        start_new_session=True,
        pass_fds=[lock],
    )


def _source() -> str:
    """The text of the module that looks for marks, from a folder or a zipapp."""
    loader: Any = marked.__loader__
    return str(loader.get_source(marked.__name__))


def _take_lock(state_dir: Path) -> int:
    """A descriptor whose lock says that this state directory is in use, until its last copy is closed."""
    lock = os.open(state_dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(lock)
                raise OSError(errno.EBUSY, f"another agent works with {state_dir}: stop it first") from None
            time.sleep(_POLL_SECONDS)
