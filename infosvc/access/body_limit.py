"""Bodies of requests while they come in: a slow one holds the thread that reads it, so each has a place and a deadline.

A small body is usually there already when its call is. Of thousands of agents many are read at the same moment, and to
refuse one for that would be wrong: so a small body needs a place only when it does not come at once.

The server's own code owns the sockets and nothing here can end a read. Whoever can (`infosvc.http.connections`) looks
again and again for the bodies that are `overdue` and cuts their connections, whereupon the read ends short.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter

from infosvc.wire.errors import Malformed, NotReady

PATIENCE_SECONDS = 4.0  # how long a body waits until another one is read
PART_FOR_STRANGERS = 0.4  # of the time that others get: their bodies are one token long, and have few places
BYTES_PER_SECOND = 64 << 10  # the least rate of a long one
PIECE_BYTES = 64 << 10
OF_ONE = 2  # places of one caller
KEPT_FREE = 4  # one place of so many is for callers that hold no other
LOOKS = 3  # how often a small body is seen coming in until it needs a place: a process that stands still looks at none
DISTRUST_SECONDS = 60.0  # how long a caller with a slow body gets a place only while most are free


@dataclass(eq=False, slots=True)
class Body:
    """One that comes in: whose, from which address, and from when until when, in monotonic seconds."""

    caller: str
    address: str
    length: int
    begun: float = 0.0
    ends_at: float = 0.0  # when all of it must be there
    late_at: float = 0.0  # when the next piece must be there
    has_place: bool = True
    looks: int = 0  # how often it was seen without a place
    tries: int = 0  # how often its connection was looked for, to be cut
    thread: int = field(default_factory=threading.get_ident)
    let_in: threading.Event | None = None  # for one that waits


class BodyLimit:
    """Lets a quarter of the threads read bodies, two for one caller, and some more wait; so readers find a thread.

    A caller that holds a place already gets none of the last ones, and one that was slow lately only while most are
    free. `seconds` is what a body may take, or the next piece of a long one. The only body of a caller is read without
    a place at first when it has at most `small_bytes`. Raises NotReady for a body that finds no place soon enough,
    Malformed for one that breaks off.
    """

    def __init__(
        self, threads: int, seconds: float = 5.0, waiting_of_one: int | None = None, small_bytes: int = 0
    ) -> None:
        self._most = max(1, threads // 4)
        self._last = self._most // KEPT_FREE
        self._most_waiting = threads * 3 // 8
        self._waiting_of_one = self._most_waiting if waiting_of_one is None else waiting_of_one
        self._small_bytes = small_bytes
        self._seconds = seconds
        self._held: Counter[str] = Counter()
        self._bodies: set[Body] = set()
        self._waiting: list[Body] = []  # the first that came first
        self._distrusted: dict[str, float] = {}  # until when
        self._lock = threading.Lock()

    def read(self, caller: str, address: str, length: int, read: Callable[[int], bytes]) -> bytes:
        """The body of so many bytes that `read` brings for a caller, named by token or address."""
        pieces: list[bytes] = []
        self.pour(caller, address, length, read, pieces.append)
        return b"".join(pieces)

    def pour(
        self, caller: str, address: str, length: int, read: Callable[[int], bytes], take: Callable[[bytes], object]
    ) -> None:
        """As `read`, but each piece is handed to `take`, so that a body of any length costs little memory."""
        if not length:
            return
        body = Body(caller, address, length)
        with self._lock:
            body.has_place = not self._may_come_at_once(body)
            if not body.has_place or self._has_room(caller):
                self._let_in(body)
            else:
                body.let_in = self._queue(body)
        if body.let_in is not None and not body.let_in.wait(PATIENCE_SECONDS):
            self._give_up(body)
        try:
            self._take(body, read, take)
        finally:
            self._leave(body)

    def overdue(self) -> list[Body]:
        """The bodies that are late; their callers are distrusted from now on."""
        now = time.monotonic()
        with self._lock:
            self._find_places(now)
            late = [body for body in self._bodies if body.late_at <= now]
            if late:
                lasting = {caller: until for caller, until in self._distrusted.items() if until > now}
                self._distrusted = lasting | {body.caller: now + DISTRUST_SECONDS for body in late}
        return late

    def reading(self) -> set[int]:
        """The threads that wait for a body, or for its turn."""
        with self._lock:
            return {body.thread for body in (*self._bodies, *self._waiting)}

    def _take(self, body: Body, read: Callable[[int], bytes], take: Callable[[bytes], object]) -> None:
        left = body.length
        while left:
            wanted = min(left, PIECE_BYTES)
            piece = read(wanted)
            take(piece)
            left -= len(piece)
            if len(piece) < wanted:
                got = body.length - left
                raise Malformed(f"the body broke off after {got} of {body.length} bytes", remedy="send it whole")
            if left:
                body.late_at = min(time.monotonic() + self._seconds, body.ends_at)

    def _may_come_at_once(self, body: Body) -> bool:
        is_only_one = not self._held[body.caller]
        return body.length <= self._small_bytes and is_only_one and not self._is_distrusted(body.caller)

    def _find_places(self, now: float) -> None:
        """Give places to small bodies that did not come at once, the oldest first; one that finds none is late."""
        for body in sorted((body for body in self._bodies if not body.has_place), key=attrgetter("begun")):
            body.looks += 1
            if body.looks >= LOOKS:
                body.has_place = self._free() > 0
                body.late_at = body.late_at if body.has_place else min(body.late_at, now)

    def _free(self) -> int:
        return self._most - sum(body.has_place for body in self._bodies)

    def _is_distrusted(self, caller: str) -> bool:
        return bool(self._distrusted) and self._distrusted.get(caller, 0.0) > time.monotonic()

    def _has_room(self, caller: str) -> bool:
        held, free = self._held[caller], self._free()
        if self._is_distrusted(caller):
            return not held and 2 * free > self._most
        if free <= self._last:
            return free > 0 and not held
        return held < OF_ONE

    def _let_in(self, body: Body) -> None:
        body.begun = time.monotonic()
        body.late_at = body.begun + self._seconds
        body.ends_at = body.late_at + body.length / BYTES_PER_SECOND
        self._held[body.caller] += 1
        self._bodies.add(body)

    def _queue(self, body: Body) -> threading.Event:
        of_one = sum(other.caller == body.caller for other in self._waiting)
        if len(self._waiting) >= self._most_waiting or of_one >= self._waiting_of_one:
            raise _too_many()
        self._waiting.append(body)
        return threading.Event()

    def _give_up(self, body: Body) -> None:
        """NotReady, unless the body was let in at the last moment."""
        with self._lock:
            if body in self._waiting:
                self._waiting.remove(body)
                raise _too_many()

    def _leave(self, body: Body) -> None:
        """Give the place to whoever has waited longest and may have it."""
        with self._lock:
            self._bodies.discard(body)
            self._held[body.caller] -= 1
            if not self._held[body.caller]:
                del self._held[body.caller]
            for other in [*self._waiting]:
                if other.let_in is not None and self._has_room(other.caller):
                    self._waiting.remove(other)
                    self._let_in(other)
                    other.let_in.set()


def _too_many() -> NotReady:
    return NotReady("too many bodies come in slowly", remedy="send fewer at the same time, or try again later")
