"""What the processes below one use, as the kernel counts it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from boxes.box import Use
from boxes.keeper import disk_bytes

NOTHING = Use(0.0, 0, 0, 0, 0)

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TIMES, _RESIDENT = slice(11, 15), 21
"""Fields of /proc/PID/stat behind the name: CPU time of the process and of the children it has waited for; pages."""


def of_children(root: int, found: Sequence[int]) -> Use:
    """What all processes below one have used, those that have ended included, whose time their parents have.

    `found` are those that go on, each behind its parent. The network is not counted here: see boxes.network.
    Parents are looked at first: what a child that ends meanwhile has used is missed then, and not counted twice.
    Memory is what YARN counts: the resident pages of each process.
    """
    seconds, memory, read, written = 0.0, 0, 0, 0
    for pid in (root, *found):
        with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            folder = Path("/proc", str(pid))
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            seconds += sum(map(int, fields[_TIMES])) / _TICK
            memory += int(fields[_RESIDENT]) * _PAGE if pid != root else 0
            own_read, own_written = disk_bytes(folder)
            read += own_read
            written += own_written
    return Use(seconds, memory, read, written, len(found))


def together(uses: Iterable[Use]) -> Use:
    """What several have used, but for the network.

    >>> together([Use(1.5, 10, 0, 7, 1), Use(2.0, 20, 5, 0, 2)]) == Use(3.5, 30, 5, 7, 3)
    True
    """
    found = list(uses)
    return Use(
        sum(one.cpu_seconds for one in found),
        sum(one.memory_bytes for one in found),
        sum(one.read_bytes for one in found),
        sum(one.written_bytes for one in found),
        sum(one.processes for one in found),
    )


def not_less(now: Use, before: Use) -> Use:
    """What is used now, where a look may have missed what ended during it: what was counted before has been used.

    Here, too, the network is not counted.

    >>> not_less(Use(1.0, 10, 8, 0, 1), before=Use(2.0, 20, 5, 3, 2)) == Use(2.0, 10, 8, 3, 1)
    True
    """
    return Use(
        max(now.cpu_seconds, before.cpu_seconds),
        now.memory_bytes,
        max(now.read_bytes, before.read_bytes),
        max(now.written_bytes, before.written_bytes),
        now.processes,
    )
