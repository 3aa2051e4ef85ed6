"""A folder of a caller's under a name that only root can change, so that nobody exchanges it while Docker looks for it.

A container can be given a folder by its path only, and the caller may put a link there at any moment. So the folder
that the caller has opened is mounted at a place of the broker's own until the container has it.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

PLACES = Path("/run/nodewise/boxes")
_BIND, _DETACH, _NOT_BY_LINKS = 0x1000, 2, 8
_LIBC = ctypes.CDLL(None, use_errno=True)


def pin(file: int, name: str) -> str:
    """Mount an open folder at a place called `name`, whose path is returned; OSError when that cannot be done."""
    PLACES.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = PLACES / name
    place.mkdir(mode=0o700)
    if _LIBC.mount(f"/proc/self/fd/{file}".encode(), os.fsencode(place), None, _BIND, None):
        number = ctypes.get_errno()
        place.rmdir()
        raise OSError(number, f"the folder of the box cannot be mounted: {os.strerror(number)}")
    return str(place)


def unpin(name: str) -> None:
    """Take the place away if it is there; a container that has the folder keeps it."""
    place = PLACES / name
    _LIBC.umount2(os.fsencode(place), _DETACH | _NOT_BY_LINKS)  # nobody looks at it: it may be on a disk that is broken
    with suppress(OSError):
        place.rmdir()  # refuses a folder that is not empty, so nothing of a caller's is ever deleted


def pinned() -> list[str]:
    """The names of all places."""
    return [place.name for place in PLACES.iterdir()] if PLACES.is_dir() else []
