"""Counts what processes have received and sent over the network: by TCP, and not what stays on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace

from boxes.box import Use
from boxes.sockets import Connection, connections, inodes_of, is_local


class NetworkUse:
    """Keeps what each connection had at the last look, so that what has been counted stays counted after its end.

    What went through a connection after the last look at it is missed.
    """

    def __init__(self) -> None:
        self._looking = threading.Lock()
        self._known: dict[int, Connection] = {}
        self._inodes: set[int] = set()
        self._received = self._sent = 0
        self._has_looked = False

    def total(self, used: Use, pids: Iterable[int]) -> Use:
        """The same use with what these processes have received and sent; without it where the kernel does not tell.

        A connection that several of them have counts once.
        """
        with self._looking:
            inodes = inodes_of(pids)
            if inodes is None or not self._look(inodes):
                return used
            return replace(used, received_bytes=self._received, sent_bytes=self._sent)

    def _look(self, inodes: set[int]) -> bool:
        """Add what is new; whether the kernel tells. It is not asked about nothing, once it is known to answer."""
        if inodes or not self._has_looked:
            try:
                found = connections(inodes)
            except OSError:
                return False
            for one in found:
                if not is_local(one.local, one.remote):
                    self._add(one)
        self._has_looked = True
        self._forget(inodes)
        return True

    def _add(self, one: Connection) -> None:
        before = self._known.get(one.cookie)
        self._received += max(0, one.received_bytes - (before.received_bytes if before else 0))
        self._sent += max(0, one.sent_bytes - (before.sent_bytes if before else 0))
        self._known[one.cookie] = one

    def _forget(self, inodes: set[int]) -> None:
        """Let go of sockets that two looks have not found: one look can miss a process whose parent ends meanwhile."""
        kept = inodes | self._inodes
        self._known = {cookie: one for cookie, one in self._known.items() if one.inode in kept}
        self._inodes = inodes
