"""Ends what bears the mark of a run, its STATE_DIR, wherever it went: the guard starts this file as a program."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

_MARK = b"\0STATE_DIR="


def kill_marked(folders: Collection[str]) -> None:
    """SIGKILL every process whose STATE_DIR is or lies below one of these: what left its group with setsid, too."""
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        with suppress(OSError):
            if _lies_in(_mark_of(process), folders):
                os.kill(int(process.name), signal.SIGKILL)


def _mark_of(process: Path) -> str:
    _, _, rest = (b"\0" + (process / "environ").read_bytes()).partition(_MARK)
    return os.fsdecode(rest.partition(b"\0")[0])


def _lies_in(path: str, folders: Collection[str]) -> bool:
    while path:
        if path in folders:
            return True
        path = path.rpartition("/")[0]
    return False


if __name__ == "__main__":
    kill_marked(sys.argv[1:])
