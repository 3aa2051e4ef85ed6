"""What the processes below one use, as the kernel counts it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from boxes.box import Use
from boxes.keeper import descendants

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TIMES, _RESIDENT = slice(11, 15), 21
"""Fields of /proc/PID/stat behind the name: CPU time of the process and of the children it has waited for; pages."""


def of_children(root: int) -> Use:
    """What all processes below one have used, those that have ended included, whose time their parents have.

    Memory is what YARN counts: the resident pages of each process.
    """
    seconds, memory, read, written = 0.0, 0, 0, 0
    found = descendants(root)
    for pid in (root, *found):
        with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            folder = Path("/proc", str(pid))
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            seconds += sum(map(int, fields[_TIMES])) / _TICK
            memory += int(fields[_RESIDENT]) * _PAGE if pid != root else 0
            counted = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
            read += int(counted["read_bytes"])
            written += int(counted["write_bytes"])
    return Use(seconds, memory, read, written, len(found))
