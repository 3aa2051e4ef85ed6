"""How long ago this process was started."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STARTED = 19
"""Which of the words behind the program's name tells when it was started, in ticks since the machine was."""


def own_age() -> float:
    """Seconds since the system started this process, what its interpreter needed to begin included."""
    words = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(words[_STARTED]) / os.sysconf("SC_CLK_TCK")
