"""Answers those who ask for a mount, and lets mounts go that nobody uses."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from boxes.mounts.kernel import Apart
from boxes.mounts.mount import Identity, Mount, identity, pid_of
from boxes.mounts.protocol import ANSWER_BYTES, MOUNTED, REQUEST, reason

MOST_CONNECTIONS, MOST_MOUNTS, MOST_USERS = 64, 64, 512
"""So that its descriptors are never more than the 1024 that a process may have."""
_REQUEST_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 5.0
_PEER = struct.Struct("3i")

When = Callable[[], float]


class Mounter:
    """Serves one listening socket, and keeps a mount until nobody has used it for `idle_seconds`."""

    def __init__(self, listener: socket.socket, apart: Apart, idle_seconds: float, now: When = time.monotonic) -> None:
        self._apart, self._idle_seconds, self._now = apart, idle_seconds, now
        self._mounts: dict[Identity, Mount] = {}
        self._connections: dict[socket.socket, float] = {}
        self._made = 0
        self._looking = selectors.DefaultSelector()
        listener.setblocking(False)
        self._looking.register(listener, selectors.EVENT_READ, lambda: self._accept(listener))

    def run(self) -> None:
        """For ever."""
        while True:
            self.step()

    def step(self) -> None:
        """Wait for what happens next, a while at most, and do what it asks for."""
        is_busy = self._mounts or self._connections
        pause = min(_LONGEST_PAUSE_SECONDS, self._idle_seconds / 2) if is_busy else None
        for key, _ in self._looking.select(pause):
            if self._looking.get_map().get(key.fd) is key:  # what happened before may have closed it
                key.data()
        self._hang_up_on_the_silent()
        self._end_the_idle()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):  # whoever it was has gone
            connection, _ = listener.accept()
            if len(self._connections) >= MOST_CONNECTIONS or not _is_own(connection):
                connection.close()
                return
            connection.setblocking(False)
            self._connections[connection] = self._now()
            self._looking.register(connection, selectors.EVENT_READ, lambda: self._hear(connection))

    def _hear(self, connection: socket.socket) -> None:
        """One request, which is one message with two descriptors: the file, and a pidfd of who will use the mount."""
        try:
            said, sent, _, _ = socket.recv_fds(connection, len(REQUEST) + 1, 2)
        except OSError:
            said, sent = b"", []
        if not said:
            self._hang_up(connection)
            return
        self._connections[connection] = self._now()
        try:
            answer, copies = MOUNTED, [self._share(said, sent)]
        except OSError as error:
            _say(f"a mount is refused: {reason(error)}")
            answer, copies = reason(error).encode()[:ANSWER_BYTES], []
        try:
            socket.send_fds(connection, [answer], copies)
        except OSError:
            self._hang_up(connection)
        for copy in copies:
            os.close(copy)

    def _share(self, said: bytes, sent: list[int]) -> int:
        """A copy of the mount that is asked for. All descriptors that came are the mount's then, or closed."""
        unused = list(sent)
        try:
            if said != REQUEST or len(sent) != 2:
                raise OSError(errno.EPROTO, "this is not a request")
            file, process = sent
            known, pid = identity(file), pid_of(process)
            if sum(len(one.users) for one in self._mounts.values()) >= MOST_USERS:
                raise OSError(errno.EMFILE, f"{MOST_USERS} processes use mounts already")
            if not (mount := self._mounts.get(known)):
                mount = self._mount(known, file)
                unused.remove(file)
            copy = mount.copy()
            self._count(mount, pid, process)
            unused.remove(process)
        finally:
            for descriptor in unused:
                os.close(descriptor)
        return copy

    def _mount(self, known: Identity, file: int) -> Mount:
        if len(self._mounts) >= MOST_MOUNTS:
            self._end_the_longest_idle()
        self._made += 1
        mount = self._mounts[known] = Mount(self._apart, str(self._made), file, self._now())
        self._looking.register(
            mount.alive, selectors.EVENT_READ, lambda: self._end(known, "nothing serves it any more")
        )
        _say(f"{mount.title} is mounted: {len(self._mounts)} now")
        return mount

    def _count(self, mount: Mount, pid: int, process: int) -> None:
        def forget() -> None:
            self._looking.unregister(process)
            mount.remove(process, self._now())
            os.close(process)

        before = mount.add(pid, process)
        if before is not None:
            self._looking.unregister(before)
            os.close(before)
        self._looking.register(process, selectors.EVENT_READ, forget)

    def _hang_up(self, connection: socket.socket) -> None:
        self._looking.unregister(connection)
        del self._connections[connection]
        connection.close()

    def _hang_up_on_the_silent(self) -> None:
        for connection, since in list(self._connections.items()):
            if self._now() - since > _REQUEST_SECONDS:
                self._hang_up(connection)

    def _end_the_idle(self) -> None:
        for known, mount in list(self._mounts.items()):
            if mount.idle_seconds(self._now()) >= self._idle_seconds:
                self._end(known, "nobody uses it")

    def _end_the_longest_idle(self) -> None:
        idle, known = max((mount.idle_seconds(self._now()), known) for known, mount in self._mounts.items())
        if not idle:
            raise OSError(errno.EMFILE, f"{MOST_MOUNTS} mounts are in use already")
        self._end(known, "another one needs its place")

    def _end(self, known: Identity, why: str) -> None:
        mount = self._mounts.pop(known)
        for descriptor in (mount.alive, *mount.users):
            self._looking.unregister(descriptor)
        mount.end()
        _say(f"{mount.title} is unmounted, because {why}: {len(self._mounts)} left")


def _is_own(connection: socket.socket) -> bool:
    _, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return bool(user == os.getuid())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
