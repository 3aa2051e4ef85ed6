"""The process of a run, as the agent holds it: begun by the agent itself, or a fork of its template."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol


class Process(Protocol):
    """The leader of a session of its own. Nobody else gets its number before `reap`."""

    pid: int
    descriptor: int
    """Can be read once there is something for `has_ended` to find."""
    is_lost: bool
    """Whether its number may be another's by now, because what held it has died."""

    def has_ended(self) -> bool:
        """Whether the process itself has ended; others of its group may still run."""

    def reap(self) -> int:
        """Let go of the process once it has ended: its exit status, negative for a signal."""


class Started:
    """A command that this thread has begun; its output goes to two descriptors.

    `descriptors` are passed on to the process; `before` is called in the new process, ahead of its command.
    """

    is_lost = False

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        stdout: int,
        stderr: int,
        descriptors: Sequence[int] = (),
        before: Callable[[], None] | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=environment["STATE_DIR"],
            env=environment,
            start_new_session=True,
            pass_fds=descriptors,
            preexec_fn=before,
        )
        self.pid = self._process.pid
        self.descriptor = os.pidfd_open(self.pid)

    def has_ended(self) -> bool:
        """Whether the process itself has ended; it stays in place, so its group's number is given to nobody."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def reap(self) -> int:
        """Let go of the process once it has ended: its exit status, negative for a signal."""
        os.close(self.descriptor)
        return self._process.wait()
