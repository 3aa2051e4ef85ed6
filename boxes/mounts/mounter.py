"""Answers those who ask for a mount, and lets mounts go that nobody uses."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from boxes.mounts.content import Reading, find_sha256
from boxes.mounts.kernel import Apart
from boxes.mounts.mount import Identity, Mount, identity, pid_of
from boxes.mounts.protocol import ANSWER_BYTES, DAMAGED, MOUNTED, READING, REQUEST, DamagedError, reason

MOST_CONNECTIONS, MOST_MOUNTS, MOST_USERS, MOST_READINGS = 64, 64, 512, 32
"""So that its descriptors are never more than the 1024 that a process may have."""
_MOST_WHOLE = 1024
"""Files of which is remembered that they hold what their names tell."""
_REQUEST_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 5.0
_PEER = struct.Struct("3i")

When = Callable[[], float]


class Mounter:
    """Serves one listening socket, and keeps a mount until nobody has used it for `idle_seconds`."""

    def __init__(self, listener: socket.socket, apart: Apart, idle_seconds: float, now: When = time.monotonic) -> None:
        self._apart, self._idle_seconds, self._now = apart, idle_seconds, now
        self._mounts: dict[Identity, Mount] = {}
        self._readings: dict[Identity, Reading] = {}
        self._whole: dict[Identity, None] = {}
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
        if not said or self._is_waiting(connection):
            _close(sent)
            self._hang_up(connection)
            return
        self._connections[connection] = self._now()
        try:
            reading = self._find_reading(said, sent)
        except OSError as error:
            _close(sent)
            self._refuse(connection, error)
            return
        if reading:
            reading.waiting[connection] = sent
            self._send(connection, READING)
        else:
            self._answer(connection, said, sent)

    def _find_reading(self, said: bytes, sent: list[int]) -> Reading | None:
        """Who reads the file that is asked for, so that it is mounted if it is whole; None for one that is known."""
        if said != REQUEST or len(sent) != 2 or not find_sha256(file := sent[0]):
            return None
        known = identity(file)
        if known in self._mounts or known in self._whole:
            return None
        if not (reading := self._readings.get(known)):
            if len(self._readings) >= MOST_READINGS:
                self._end_a_needless_reading()
            reading = self._readings[known] = Reading(file)
            self._looking.register(reading.told, selectors.EVENT_READ, lambda: self._end_reading(known))
        return reading

    def _end_a_needless_reading(self) -> None:
        """End the oldest for which nobody waits any more; OSError when there is none."""
        needless = (known for known, one in self._readings.items() if not one.waiting)
        if (known := next(needless, None)) is None:
            raise OSError(errno.EMFILE, f"{MOST_READINGS} files are being read already")
        reading = self._readings.pop(known)
        self._looking.unregister(reading.told)
        reading.end()

    def _end_reading(self, known: Identity) -> None:
        reading = self._readings.pop(known)
        self._looking.unregister(reading.told)
        refusal = None
        try:
            reading.judge()
            self._remember(known)
        except OSError as error:
            refusal = error
        for connection, sent in reading.waiting.items():
            self._connections[connection] = self._now()
            if refusal:
                _close(sent)
                self._refuse(connection, refusal)
            else:
                self._answer(connection, REQUEST, sent)

    def _remember(self, known: Identity) -> None:
        self._whole[known] = None
        if len(self._whole) > _MOST_WHOLE:
            del self._whole[next(iter(self._whole))]

    def _answer(self, connection: socket.socket, said: bytes, sent: list[int]) -> None:
        try:
            copy = self._share(said, sent)
        except OSError as error:
            self._refuse(connection, error)
            return
        self._send(connection, MOUNTED, [copy])
        os.close(copy)

    def _refuse(self, connection: socket.socket, error: OSError) -> None:
        _say(f"a mount is refused: {reason(error)}")
        begin = DAMAGED if isinstance(error, DamagedError) else b""
        self._send(connection, (begin + reason(error).encode())[:ANSWER_BYTES])

    def _send(self, connection: socket.socket, answer: bytes, copies: Sequence[int] = ()) -> None:
        try:
            socket.send_fds(connection, [answer], copies)
        except OSError:
            self._hang_up(connection)

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
            _close(unused)
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

    def _is_waiting(self, connection: socket.socket) -> bool:
        return any(connection in one.waiting for one in self._readings.values())

    def _hang_up(self, connection: socket.socket) -> None:
        for reading in self._readings.values():
            _close(reading.waiting.pop(connection, ()))
        self._looking.unregister(connection)
        del self._connections[connection]
        connection.close()

    def _hang_up_on_the_silent(self) -> None:
        for connection, since in list(self._connections.items()):
            if self._now() - since > _REQUEST_SECONDS and not self._is_waiting(connection):
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


def _close(descriptors: Iterable[int]) -> None:
    for one in descriptors:
        os.close(one)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
