"""Tells which TCP connections processes have, and what went through each: as the kernel counts it, by sock_diag."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP = 20, 0x301
_ERROR, _DONE = 2, 3
"""Kinds of a message of netlink."""
_INFO = 2
"""The attribute of a socket that holds its `struct tcp_info`."""
_CONNECTED = sum(1 << state for state in (1, 4, 5, 8, 9, 11))
"""States of TCP in which a socket is somebody's and something goes through: established, and half closed."""
_HEADER = struct.Struct("=LHHLL")
_REQUEST = struct.Struct("=BBBxL48x")
_SOCKET = struct.Struct("=B7x16s16s4xQ16xL")
"""Of `struct inet_diag_msg`: the family, both addresses, the cookie, the inode."""
_ATTRIBUTE = struct.Struct("=HH")
_NUMBER = struct.Struct("=i")
_COUNTED = struct.Struct("=120xQQ")
"""Of `struct tcp_info`: bytes_acked and bytes_received, which kernels before 4.1 do not have."""
_SECONDS = 5.0
_PIECE_BYTES = 1 << 16
_PLAIN_IN_IPV6 = b"\0" * 10 + b"\xff\xff"
_LOOPBACK_IPV6 = b"\0" * 15 + b"\1"
_LOOPBACK_IPV4 = 127


class Connection(NamedTuple):
    """A TCP connection with its ends, which are addresses of IPv6; what was sent counts once it has arrived.

    cookie    no other connection of this machine has it, also not after the end
    """

    cookie: int
    inode: int
    local: bytes
    remote: bytes
    received_bytes: int
    sent_bytes: int


def inodes_of(pids: Iterable[int]) -> set[int] | None:
    """The inodes of all sockets that processes have open; None when this process may not look at one of them."""
    found: set[int] = set()
    for pid in pids:
        try:
            found.update(_inodes(pid))
        except PermissionError:
            if not _has_ended(pid):
                return None
        except OSError:  # it has ended meanwhile
            pass
    return found


def _has_ended(pid: int) -> bool:
    """Whether nothing is left of a process but its exit code, which its parent has not asked for yet."""
    with suppress(OSError):
        return Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    return True


def _inodes(pid: int) -> list[int]:
    found = []
    for file in Path("/proc", str(pid), "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            kind, _, inode = str(file.readlink()).partition("[")
            if kind == "socket:":
                found.append(int(inode[:-1]))
    return found


def connections(inodes: Collection[int]) -> list[Connection]:
    """The connections that have these inodes; OSError when the kernel does not tell, or not what went through."""
    found = []
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(_SECONDS)
            kernel.send(_request(family))
            for content in _answers(kernel):
                own_family, local, remote, cookie, inode = _SOCKET.unpack_from(content)
                if inode in inodes and (counted := _counted(content)):
                    ends = _as_ipv6(own_family, local), _as_ipv6(own_family, remote)
                    found.append(Connection(cookie, inode, *ends, *counted))
    return found


def _as_ipv6(family: int, address: bytes) -> bytes:
    return _PLAIN_IN_IPV6 + address[:4] if family == socket.AF_INET else address


def _request(family: int) -> bytes:
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _CONNECTED)
    return _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 0, 0) + body


def _answers(kernel: socket.socket) -> Iterator[memoryview]:
    """What the kernel tells of each socket, until it says that this is all."""
    while True:
        piece = memoryview(kernel.recv(_PIECE_BYTES))
        while piece:
            length, kind, *_ = _HEADER.unpack_from(piece)
            content = piece[_HEADER.size : length]
            if kind in (_ERROR, _DONE):
                (number,) = _NUMBER.unpack_from(content)
                if number < 0:
                    raise OSError(-number, os.strerror(-number))
                return
            yield content
            piece = piece[_padded(length) :]


def _counted(content: memoryview) -> tuple[int, int] | None:
    """What was received and sent; None where the kernel says nothing of it."""
    left = content[_SOCKET.size :]
    while len(left) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(left)
        if kind == _INFO:
            if length < _ATTRIBUTE.size + _COUNTED.size:
                raise OSError("this kernel does not count what goes through a socket")
            sent, received = _COUNTED.unpack_from(left, _ATTRIBUTE.size)
            return received, sent
        left = left[max(_padded(length), _ATTRIBUTE.size) :]
    return None


def _padded(length: int) -> int:
    return (length + 3) & ~3


def is_local(local: bytes, remote: bytes) -> bool:
    """Whether a connection stays on its machine, by its ends as the kernel tells them: 16 bytes each.

    >>> def ends(*texts): return [socket.inet_pton(socket.AF_INET6, one) for one in texts]
    >>> is_local(*ends("::1", "::1")), is_local(*ends("::ffff:127.0.0.1", "::ffff:127.0.0.2"))
    (True, True)
    >>> is_local(*ends("2001:db8::1", "2001:db8::1")), is_local(*ends("2001:db8::1", "2001:db8::2"))
    (True, False)
    """
    if local == remote or remote == _LOOPBACK_IPV6:
        return True
    return remote.startswith(_PLAIN_IN_IPV6) and remote[len(_PLAIN_IN_IPV6)] == _LOOPBACK_IPV4
