"""Tunnels between users' commands and the runners of their tasks: bytes that pass through, and are kept nowhere."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from infosvc.settings import Clock
from infosvc.wire.errors import Conflict, InvalidInput, NotFound, NotReady
from infosvc.wire.tunnel.described import Tunnel
from infosvc.wire.tunnel.frames import IDLING, take_whole

THREADS_OF_TUNNEL = 8
"""The service has so many for each tunnel, which holds two of them, so that other calls find some."""
THREADS_OF_WAITING_CALL = 32
"""The same for each call that waits for a tunnel, as submitters make them."""
MOST_OF_ONE = 4
"""Tunnels of one user at the same time."""
JOIN_SECONDS = 60.0
"""How long one end waits for the other to come."""
HEARTBEAT_SECONDS = 5.0
"""How often an end hears something, and it is noticed that it has gone."""
MOST_WAITING_BYTES = 1 << 18
"""On the way to an end that reads slower than the other writes."""


class End(StrEnum):
    """Who reads and writes."""

    USER = "user"
    RUNNER = "runner"

    @property
    def other(self) -> End:
        """The one at the other end."""
        return End.RUNNER if self is End.USER else End.USER


@dataclass
class _Way:
    """What is on its way to one end; `sent` is how much the other end has put in since the beginning.

    Its reader holds a thread of the service, even after the tunnel's end while its client takes nothing.
    """

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    sent: int = 0
    was_joined: bool = False
    has_reader: bool = False


class OpenTunnel:
    """One tunnel; `owner` is whose task it leads to, `opener` which user has opened it."""

    def __init__(self, told: Tunnel, owner: str, opener: str, clock: Clock) -> None:
        self.told = told
        self.owner = owner
        self.opener = opener
        self.is_over = False
        self._clock = clock
        self._opened_at = clock.monotonic()
        self._changed = threading.Condition()
        self._ways = {end: _Way() for end in End}

    def is_joined_by(self, end: End) -> bool:
        """Whether this end reads, or has read."""
        return self._ways[end].was_joined

    @property
    def has_readers(self) -> bool:
        """Whether threads of the service still belong to it."""
        return any(way.has_reader for way in self._ways.values())

    @property
    def is_old(self) -> bool:
        """Whether an end that has not joined it by now does not come any more."""
        return self._clock.monotonic() - self._opened_at > JOIN_SECONDS

    def check_unread(self, end: End) -> None:
        """Conflict when somebody reads at an end, or has; NotFound when the tunnel is over."""
        if self.is_over:
            raise _over(self.told.tunnel_id)
        if self.is_joined_by(end):
            raise Conflict("this end of the tunnel is read already", "tunnel_id", remedy="open another tunnel")

    def read(self, end: End) -> Iterator[bytes]:
        """What comes for an end, until the tunnel is over; the errors are those of check_unread.

        Whoever reads says with `Tunnels.leave` that it does so no more.
        """
        with self._changed:
            self.check_unread(end)
            self._ways[end].was_joined = self._ways[end].has_reader = True
        return self._pieces(end)

    def leave(self, end: End) -> None:
        """Nobody reads at this end any more."""
        with self._changed:
            self._ways[end].has_reader = False

    def write(self, end: End, begin: int, content: bytes) -> None:
        """Take frames that an end sends behind the first `begin` bytes of all that it sent.

        Those that were taken already change nothing. Conflict when something is missing between, NotReady when the
        other end reads too slowly, NotFound when the tunnel is over.
        """
        _check(content)
        way = self._ways[end.other]
        with self._changed:
            if self.is_over:
                raise _over(self.told.tunnel_id)
            if begin + len(content) <= way.sent:
                return
            if begin != way.sent:
                raise Conflict(f"begin={begin} is not where this end stopped: {way.sent} bytes came", "begin")
            if way.size >= MOST_WAITING_BYTES:
                raise NotReady("the other end of the tunnel reads too slowly", remedy="send it again")
            way.pieces.append(content)
            way.size += len(content)
            way.sent += len(content)
            self._changed.notify_all()

    def end(self) -> None:
        """Let both ends hear that it is over."""
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def _pieces(self, end: End) -> Iterator[bytes]:
        way, other = self._ways[end], self._ways[end.other]
        yield IDLING
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.is_over or way.pieces, HEARTBEAT_SECONDS)
                piece, way.pieces, way.size = b"".join(way.pieces), [], 0
            if self.is_over and not piece:
                return
            if not other.was_joined and self.is_old:
                return
            yield piece or IDLING


class Tunnels:
    """All that there are now, as many as the threads of the service allow.

    A tunnel keeps its place until its readers have gone: otherwise opening and ending many could take all threads.
    """

    def __init__(self, clock: Clock, threads: int) -> None:
        self._clock = clock
        self._most = max(1, threads // THREADS_OF_TUNNEL)
        self._most_waiting = max(1, threads // THREADS_OF_WAITING_CALL)
        self._known: dict[str, OpenTunnel] = {}
        self._changed = threading.Condition()
        self._waiting = 0
        self._is_closed = False

    def open(self, task_id: str, owner: str, opener: str) -> OpenTunnel:
        """A new one; Conflict when there are too many, of all or of the user who opens it, NotReady after `close`."""
        made = OpenTunnel(Tunnel(secrets.token_hex(16), task_id), owner, opener, self._clock)
        with self._changed:
            if self._is_closed:
                raise NotReady(f"the service ends: there is no tunnel to {task_id}", remedy="try again later")
            self._forget_old()
            self._check_place(opener)
            self._known[made.told.tunnel_id] = made
            self._changed.notify_all()
        return made

    def find(self, tunnel_id: str) -> OpenTunnel:
        """One of them; NotFound when there is none of this id, or it is over."""
        found = self._known.get(tunnel_id)
        if found is None or found.is_over:
            raise _over(tunnel_id)
        return found

    def waiting(self, task_id: str, seconds: float) -> list[Tunnel]:
        """Those that no runner has joined yet, of one task or of all; waits for one at most so many seconds.

        NotReady when too many wait already: who is answered at once asks again at once.
        """
        with self._changed:
            if seconds:
                self._wait_for_one(task_id, seconds)
            return self._unjoined(task_id)

    def end(self, tunnel: OpenTunnel) -> None:
        """End one."""
        tunnel.end()
        with self._changed:
            if not tunnel.has_readers:
                self._known.pop(tunnel.told.tunnel_id, None)

    def leave(self, tunnel: OpenTunnel, end: End) -> None:
        """End one whose reader at this end has gone."""
        tunnel.leave(end)
        self.end(tunnel)

    def close(self) -> None:
        """End all of them, and those who wait for one; none can be opened from now on."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for tunnel in list(self._known.values()):
            self.end(tunnel)

    def _check_place(self, opener: str) -> None:
        """Conflict unless this user may have one more; the last quarter of all is for users who have none."""
        own = sum(one.opener == opener for one in list(self._known.values()))
        if own >= MOST_OF_ONE:
            raise Conflict(f"{opener} has {own} tunnels", remedy="close one of them")
        if len(self._known) >= (self._most * 3 // 4 if own else self._most):
            rest = ", and the rest is for users who have none" if len(self._known) < self._most else ""
            raise Conflict(f"{len(self._known)} of {self._most} tunnels are open{rest}", remedy="try again later")

    def _wait_for_one(self, task_id: str, seconds: float) -> None:
        if self._waiting >= self._most_waiting:
            taken = f"{self._waiting} of {self._most_waiting}"
            raise NotReady(f"{taken} callers wait for tunnels already", remedy="try again later")
        self._waiting += 1
        try:
            self._changed.wait_for(lambda: self._is_closed or self._unjoined(task_id), seconds)
        finally:
            self._waiting -= 1

    def _unjoined(self, task_id: str) -> list[Tunnel]:
        self._forget_old()
        return [
            one.told
            for one in list(self._known.values())
            if task_id in ("", one.told.task_id) and not one.is_over and not one.is_joined_by(End.RUNNER)
        ]

    def _forget_old(self) -> None:
        """Those that nobody reads after a while; where somebody does, its reader notices."""
        for tunnel in list(self._known.values()):
            if tunnel.is_old and not any(map(tunnel.is_joined_by, End)):
                tunnel.end()
                self._known.pop(tunnel.told.tunnel_id, None)


def _check(content: bytes) -> None:
    """InvalidInput unless these are whole frames: the service puts some of its own between them."""
    left = bytearray(content)
    try:
        take_whole(left)
    except ValueError as error:
        raise InvalidInput(f"the body is not made of frames: {error}", "body") from None
    if left:
        raise InvalidInput("the body ends in the middle of a frame", "body", remedy="send whole frames")


def _over(tunnel_id: str) -> NotFound:
    return NotFound(f"there is no tunnel {tunnel_id[:40]}: it may have ended", "tunnel_id", remedy="open another one")
