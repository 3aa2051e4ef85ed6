"""What one run may use of its node, and how a process gets these limits before its command starts."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_MIN_CPU_SECONDS = 10
_TOOL_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
_PROBE_SECONDS = 10
_LIBC = ctypes.CDLL(None)
_OPTIONS = {  # of prlimit
    resource.RLIMIT_CPU: "cpu",
    resource.RLIMIT_AS: "as",
    resource.RLIMIT_NOFILE: "nofile",
    resource.RLIMIT_NPROC: "nproc",
    resource.RLIMIT_CORE: "core",
}


@dataclass(frozen=True)
class Limits:
    """Limits of each process of a run; there is never a core file, and never a new privilege.

    cpu_seconds          of one process; None means twice the slot's timeout, at least 10
    address_space_bytes  virtual memory of one process
    open_files           descriptors of one process
    processes            of the agent's user on this machine, all together: the kernel counts per user, never for root
    """

    cpu_seconds: int | None = None
    address_space_bytes: int = 2 * 1024**3
    open_files: int = 256
    processes: int = 4096

    def cpu(self, timeout: float) -> int:
        """CPU seconds of a run whose slot has this timeout in seconds."""
        return self.cpu_seconds or max(int(2 * timeout), _MIN_CPU_SECONDS)

    def prefix(self, timeout: float, prlimit: str, setpriv: str) -> list[str]:
        """What stands before a command so that it gets the limits, and SIGKILL when the agent dies."""
        return [
            prlimit,
            *(f"--{_OPTIONS[kind]}={most}" for kind, most in self._most(timeout)),
            setpriv,
            "--no-new-privs",
            "--pdeathsig",
            "KILL",
            "--",
        ]

    def apply(self, timeout: float, agent: int) -> None:
        """In the new process, before its command: the same as `prefix`; end if the agent is dead already."""
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        for kind, most in self._most(timeout):
            resource.setrlimit(kind, (most, most))
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != agent:
            os._exit(1)

    def _most(self, timeout: float) -> list[tuple[int, int]]:
        """Each limit, or what the login of the agent's user may have at most: nobody but root can go beyond that."""
        wished = (
            (resource.RLIMIT_CPU, self.cpu(timeout)),
            (resource.RLIMIT_AS, self.address_space_bytes),
            (resource.RLIMIT_NOFILE, self.open_files),
            (resource.RLIMIT_NPROC, self.processes),
            (resource.RLIMIT_CORE, 0),
        )
        return [(kind, _possible(kind, most)) for kind, most in wished]


class Confinement:
    """Puts the limits on runs: by util-linux's tools, which spares the agent a fork of itself, else in the fork.

    Measured on two cores: a start costs the agent 0.4 ms with the tools and 1.4 ms without, agent and run together
    2.5 ms and 4.2 ms.
    """

    def __init__(self, limits: Limits, path: str = _TOOL_PATH) -> None:
        self._limits = limits
        self._tools = _tools(path)

    def start(self, argv: list[str], timeout: float) -> tuple[list[str], Callable[[], None] | None]:
        """The argument list to start, and what to do in the new process before that."""
        if self._tools:
            return [*self._limits.prefix(timeout, *self._tools), *argv], None
        agent = os.getpid()
        return argv, lambda: self._limits.apply(timeout, agent)


def _possible(kind: int, most: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def _tools(path: str) -> tuple[str, str] | None:
    """The real paths of prlimit and setpriv; None when one is missing or another program of that name."""
    prlimit, setpriv = shutil.which("prlimit", path=path), shutil.which("setpriv", path=path)
    if not prlimit or not setpriv:
        return None
    probe = [*Limits().prefix(1, prlimit, setpriv), "/bin/sh", "-c", "exit 0"]
    try:
        done = subprocess.run(probe, capture_output=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (prlimit, setpriv) if done.returncode == 0 else None
