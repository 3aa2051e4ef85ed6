"""Finds peers that do not answer: the kernel knows of each connection what was sent and not acknowledged.

A peer that hangs, or reads nothing for hours, does answer: its kernel acknowledges, and says that it has no room. Only
where packets are lost on the way, there or back, nothing comes.

A peer whose connection does not come from where it listens is found at the other end: the kernel asks also who has
nothing to say, once a second.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path

DESCRIPTORS = Path("/proc/self/fd")
SILENT_SECONDS = 3.0
"""Of a connection, since its peer acknowledged anything."""
ASK_SECONDS, MOST_ASKED = 1, 127
"""A peer that has said nothing for so long is asked whether it is there; the connection ends after so many in vain."""
TIMES, OPENING_TIMES = 3, 2
"""Sent again in a row; of what opens a connection more rarely, as that begins with a pause of a second."""
SYN_SENT = 2
SO_PEERNAME = 28
"""Linux tells by this whom a connection is meant for that is not open yet, too; Python has no name for it."""
ADDRESS_BYTES = {socket.AF_INET: slice(4, 8), socket.AF_INET6: slice(8, 24)}
"""Where the address is in what the kernel tells of a peer."""
TCP_INFO_BYTES = 60


@dataclass(frozen=True)
class Link:
    """One connection: its `state`, and how often data, and questions, were sent without any answer."""

    state: int
    sent_again: int
    asked: int
    silent_seconds: float

    @property
    def is_cut(self) -> bool:
        """Whether nothing comes from the peer, although it would have to answer."""
        if self.state == SYN_SENT:
            return self.sent_again >= OPENING_TIMES
        return max(self.sent_again, self.asked) >= TIMES and self.silent_seconds >= SILENT_SECONDS


class Links:
    """The connections that this process opens or takes from now on."""

    def __init__(self) -> None:
        self._earlier = frozenset(name for _, name in _find_sockets())

    def ask(self) -> None:
        """Have the kernel ask the peers of those that are open whether they are there, from now on."""
        for one in self._open():
            with contextlib.suppress(OSError):
                keep_asking(one)

    def find_cut(self) -> frozenset[str]:
        """Addresses of peers that do not answer."""
        found = set()
        for one in self._open():
            with contextlib.suppress(OSError):
                if read_link(one).is_cut:
                    found.add(_read_peer(one))
        return frozenset(found)

    def _open(self) -> Iterator[socket.socket]:
        """Each connection, by a descriptor of its own that is closed after its turn."""
        for number, name in _find_sockets():
            if name not in self._earlier:
                with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as one:
                    if one.type == socket.SOCK_STREAM and one.family in ADDRESS_BYTES:
                        yield one


def keep_asking(one: socket.socket) -> None:
    """Have the kernel ask the peer of a connection whether it is there, whenever nothing comes."""
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, ASK_SECONDS)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, ASK_SECONDS)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, MOST_ASKED)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def read_link(one: socket.socket) -> Link:
    """What the kernel tells of a connection; OSError where it is none of TCP.

    The fields are those of struct tcp_info, which Linux only adds to: state, ca_state, retransmits, probes, and at byte
    56 the milliseconds since the last acknowledgement.
    """
    told = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    state, _, sent_again, asked = struct.unpack_from("4B", told)
    (silent,) = struct.unpack_from("I", told, 56)
    return Link(state, sent_again, asked, silent / 1000)


def plain_address(address: str) -> str:
    """The same for an address of version 4, however a system writes it.

    >>> plain_address("::ffff:10.0.0.7"), plain_address("fe80::1%2"), plain_address("10.0.0.7")
    ('10.0.0.7', 'fe80::1', '10.0.0.7')
    """
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


def _read_peer(one: socket.socket) -> str:
    place = ADDRESS_BYTES[socket.AddressFamily(one.family)]
    told = one.getsockopt(socket.SOL_SOCKET, SO_PEERNAME, place.stop)
    return plain_address(str(ip_address(told[place])))


def _find_sockets() -> Iterator[tuple[int, str]]:
    """The numbers and names of this process's sockets; one that is closed meanwhile is passed over."""
    for entry in DESCRIPTORS.iterdir():
        with contextlib.suppress(OSError):
            if (name := str(entry.readlink())).startswith("socket:"):
                yield int(entry.name), name
