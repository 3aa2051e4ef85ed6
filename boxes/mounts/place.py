"""Where the mounter listens: a socket in a folder that only its user can open."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLACE = "NODEWISE_MOUNTS"
"""Environment variable with the folder of another mounter."""
_FOLDER = Path("/run/nodewise-mounts")


def folder() -> Path:
    """The folder of this node's mounter."""
    return Path(os.environ.get(PLACE) or _FOLDER)


@contextmanager
def open_own(place: Path) -> Iterator[Path]:
    """The folder by a path that no other user can exchange, and that is short enough for sockets.

    OSError when others can open it, or it is none of the user's.
    """
    found = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        about = os.fstat(found)
        if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
            raise OSError(errno.EPERM, "this must be a folder of the user's own, which no other can open", str(place))
        yield Path("/proc/self/fd", str(found))
    finally:
        os.close(found)


def socket_in(folder: Path) -> Path:
    """Where the mounter of a folder listens."""
    return folder / "socket"
