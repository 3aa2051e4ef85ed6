"""Programs with a session of their own, so that they can be ended with all that they have started.

The number of a program belongs to it until somebody waits for it; then another process may get it, and a group of
processes of that number, too. So whoever is to signal a session asks for its program's status by `status_of`, and waits
for the program last.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

_SET_DEATH_SIGNAL = 1
_LIBC = ctypes.CDLL(None)
_PROCESSES = Path("/proc")


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends in whatever way; in a child that was just forked."""
    _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def status_of(program: subprocess.Popen[Any]) -> int | None:
    """Its exit status, negative for a signal, None while it runs; unlike `poll` this keeps its number its own."""
    if program.returncode is not None:
        return program.returncode
    try:
        ended = os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # whoever started us ignores SIGCHLD: the system keeps nothing of what has ended
        return program.poll()
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def signal_session(program: subprocess.Popen[Any], number: int) -> bool:
    """Whether anything of its session is left to hear the signal; nobody hears 0, nor once it was waited for."""
    has_ended = status_of(program) is not None
    if program.returncode is not None:
        return False
    is_left = not has_ended or _is_left(program.pid)
    os.killpg(program.pid, number)
    return is_left


def _is_left(group: int) -> bool:
    """Whether a process of this group has not ended."""
    return any(_runs_in(folder, group) for folder in _PROCESSES.glob("[0-9]*"))


def _runs_in(folder: Path, group: int) -> bool:
    """Whether a process, whose folder this is, is of the group and has not ended."""
    try:
        state, _, its_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):  # it is gone
        return False
    return int(its_group) == group and state not in "ZX"
