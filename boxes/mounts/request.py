"""Asks this node's mounter for copies of its mounts."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path

from boxes.mounts import place
from boxes.mounts.protocol import ANSWER_BYTES, DAMAGED, MOUNTED, READING, REQUEST, DamagedError

_SECONDS = 5.0
_READING_SECONDS = 300.0
"""Of a slow disk, the first time that a large file is mounted there."""


def ask(files: Sequence[Path]) -> list[int]:
    """A descriptor with a copy of a mount of each file; OSError when the mounter has none for it, or there is none.

    DamagedError is for a file that nobody should mount. This process is counted as the mount's user until it ends.
    """
    if not files:
        return []
    copies: list[int] = []
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(_SECONDS)
            _connect(connection, place.folder())
            for file in files:
                copies.append(_ask(connection, file))
    except BaseException as error:
        close(copies)
        if isinstance(error, TimeoutError):
            why = f"the mounter has not answered within {connection.gettimeout():.0f} s"
            raise OSError(errno.ETIMEDOUT, why) from error
        raise
    return copies


def close(descriptors: Iterable[int]) -> None:
    """Let copies go that are not needed here any more."""
    for one in descriptors:
        os.close(one)


def _connect(connection: socket.socket, folder: Path) -> None:
    try:
        with place.open_own(folder) as own:
            connection.connect(str(place.socket_in(own)))
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise OSError(errno.ENOENT, f"no mounter serves {folder}") from error


def _ask(connection: socket.socket, file: Path) -> int:
    asked = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    process = os.pidfd_open(os.getpid())
    try:
        socket.send_fds(connection, [REQUEST], [asked, process])
        said, copies = _hear(connection)
    except ConnectionError:
        said, copies = b"", []
    finally:
        os.close(asked)
        os.close(process)
    for one in copies:
        os.set_inheritable(one, False)
    if said.startswith(DAMAGED):
        close(copies)
        raise DamagedError(errno.EIO, said.removeprefix(DAMAGED).decode(errors="replace"))
    if said != MOUNTED or len(copies) != 1:
        close(copies)
        raise OSError(errno.ECONNREFUSED, said.decode(errors="replace") or "the mounter has hung up")
    return copies[0]


def _hear(connection: socket.socket) -> tuple[bytes, list[int]]:
    """The answer, and the descriptors that come with it."""
    said, copies, _, _ = socket.recv_fds(connection, ANSWER_BYTES, 1)
    if said != READING:
        return said, copies
    connection.settimeout(_READING_SECONDS)
    said, copies, _, _ = socket.recv_fds(connection, ANSWER_BYTES, 1)
    connection.settimeout(_SECONDS)
    return said, copies
