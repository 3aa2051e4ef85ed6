"""Programs with a session of their own, so that they can be ended with all that they have started."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from typing import Any

_SET_DEATH_SIGNAL = 1
_LIBC = ctypes.CDLL(None)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends in whatever way; in a child that was just forked."""
    _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def signal_session(program: subprocess.Popen[Any], number: int) -> bool:
    """Whether anything of its session is left to hear the signal; nobody hears 0."""
    program.poll()
    try:
        os.killpg(program.pid, number)
    except ProcessLookupError:
        return False
    return True
