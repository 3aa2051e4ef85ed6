"""What processes were started with."""

from __future__ import annotations

import psutil


def command_line(process: psutil.Process) -> list[str]:
    """The words of a process, none of one that has ended since it was found."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
