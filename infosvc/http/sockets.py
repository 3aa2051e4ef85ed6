"""The connections that callers have with this process, as the kernel knows them: who, how long silent; and the end.

The server's own code owns them and shows none. But their descriptors are this process's, so the kernel may be asked.
"""

from __future__ import annotations

import os
import resource
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MOST = 65_536
RESERVE = 512  # descriptors for the database, calls to agents and files; a quarter where there are few
AT_ONCE = 64  # connections that are looked at before callers get their turn
REST_SECONDS = 0.001
EXACT_SECONDS = 0.05  # how exactly the kernel's times are known

_FOLDER = Path("/proc/self/fd")
_INFO = struct.Struct("=44xI4xI100xI")  # of the kernel's struct tcp_info
_INFO_BYTES = _INFO.size


class Connection(NamedTuple):
    """One with a caller; when data last went and came, or else when it was opened, in monotonic seconds."""

    descriptor: int
    peer: tuple[str, int]
    sent_at: float
    heard_at: float
    is_answered: bool  # whether anything ever went to the caller

    @property
    def used_at(self) -> float:
        """When data last went in either direction."""
        return max(self.sent_at, self.heard_at)


def most_connections() -> int:
    """How many connections with callers this process may have, by its limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MOST + RESERVE if soft == resource.RLIM_INFINITY else min(soft, MOST + RESERVE)
    return files - min(RESERVE, files // 4)


def count_open() -> int:
    """The files that this process has open, connections among them; older kernels make us count."""
    return _FOLDER.stat().st_size or len(_descriptors())


def look(port: int) -> Iterator[Connection]:
    """The connections that callers have to a port of this process. It rests now and then, so that nobody waits."""
    for number, descriptor in enumerate(_descriptors(), 1):
        connection = _look_at(descriptor, port)
        if connection is not None:
            yield connection
        if number % AT_ONCE == 0:
            time.sleep(REST_SECONDS)


def cut(connection: Connection, port: int) -> bool:
    """End a connection at once; False when it has ended already, or something went to the caller meanwhile."""
    with suppress(OSError):
        descriptor = os.dup(connection.descriptor)  # of which nobody else disposes while we look whose it is
        try:
            current = _look_at(descriptor, port)
            if (
                current is not None
                and current.peer == connection.peer
                and current.sent_at < connection.sent_at + EXACT_SECONDS
            ):
                with_caller = socket.socket(fileno=descriptor)
                try:
                    with_caller.shutdown(socket.SHUT_RDWR)
                finally:
                    with_caller.detach()
                return True
        finally:
            os.close(descriptor)
    return False


def _descriptors() -> list[int]:
    with os.scandir(_FOLDER) as files:
        return [int(file.name) for file in files]


def _look_at(descriptor: int, port: int) -> Connection | None:
    """What the kernel says of a descriptor that others may close meanwhile; None unless it is a caller's."""
    try:
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=descriptor)
    except OSError:
        return None
    try:
        if one.getsockname()[1:2] != (port,):
            return None
        host, peer_port = one.getpeername()[:2]
        sent, heard, segments = _INFO.unpack(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES))
    except (OSError, struct.error, TypeError):
        return None
    finally:
        one.detach()
    peer, now = (host.partition("%")[0], peer_port), time.monotonic()
    return Connection(descriptor, peer, now - sent / 1e3, now - heard / 1e3, segments > 0)
