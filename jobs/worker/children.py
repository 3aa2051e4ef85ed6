"""The forked processes as their parent sees them: who has what, who has ended, who hangs."""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from jobs.worker.child import Broken, Chunk, Done, Pulse
from jobs.worker.sessions import die_with_parent

DEPTH = 2
"""Chunks that a process has at once: one that it looks at, and one that it reads meanwhile."""

Serve = Callable[[Connection, Pulse], None]


@dataclass(frozen=True)
class Died:
    """A process ended or hung while it had `chunk`, which may be why; what else it had is `left`."""

    chunk: Chunk | None
    left: tuple[Chunk, ...]
    reason: str


@dataclass
class Child:
    """One process; `chunks` are those it has not answered, the one it works on first."""

    pid: int
    connection: Connection
    pulse: Pulse
    chunks: deque[Chunk] = field(default_factory=deque)
    seen: int = 0
    moved: float = 0.0
    broken: Broken | None = None

    def give(self, chunk: Chunk, now: float) -> None:
        """One more chunk; a process that has died or hangs takes none, which its end will tell."""
        if not self.chunks:
            self.moved = now
        self.chunks.append(chunk)
        try:
            self.connection.send(chunk)
        except OSError:
            return

    def hangs(self, now: float, seconds: float) -> bool:
        """Whether it has not come further for so long, although it has something to do."""
        count = self.pulse.count()
        if count != self.seen or not self.chunks:
            self.seen, self.moved = count, now
        return now - self.moved > seconds

    def reap(self) -> str:
        """Why it ended; it has by then."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        self.connection.close()
        code = os.waitstatus_to_exitcode(status)
        if self.broken:
            return self.broken.reason
        return (
            f"its process was ended by {signal.Signals(-code).name}" if code < 0 else f"its process exited with {code}"
        )


class Children:
    """`size` processes that run `serve`; a fork replaces one that has died. One of `hang_seconds` counts as dead.

    `in_child` lets go of what only the parent may use.
    """

    def __init__(self, size: int, serve: Serve, hang_seconds: float, in_child: Callable[[], None]) -> None:
        self._serve = serve
        self._hang_seconds = hang_seconds
        self._in_child = in_child
        self._children: list[Child] = []
        for _ in range(size):
            self._children.append(self._fork())

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._children)

    @property
    def busy(self) -> bool:
        """Whether any has something to do."""
        return any(child.chunks for child in self._children)

    def free(self) -> Child | None:
        """The one that has least to do, if it can take one more."""
        idlest = min(self._children, key=lambda child: len(child.chunks))
        return idlest if len(idlest.chunks) < DEPTH else None

    def wait(self, seconds: float) -> list[Done | Died]:
        """What happened within so long, as soon as something does."""
        ready = wait([child.connection for child in self._children], seconds)
        events: list[Done | Died] = []
        for child in [child for child in self._children if child.connection in ready]:
            events += self._hear(child)
        now = time.monotonic()
        for child in [child for child in self._children if child.hangs(now, self._hang_seconds)]:
            child.broken = Broken(f"its process did not come further for {self._hang_seconds:.0f} s")
            events.append(self._replace(child))
        return events

    def close(self) -> None:
        """End all of them, whatever they are at."""
        while self._children:
            self._children.pop().reap()

    def _hear(self, child: Child) -> list[Done | Died]:
        """All that it has said: the rows of what it did before it died count."""
        events: list[Done | Died] = []
        try:
            while child.connection.poll():
                event = child.connection.recv()
                if isinstance(event, Broken):
                    child.broken = event
                else:
                    child.chunks.popleft()
                    events.append(event)
        except (EOFError, OSError):
            events.append(self._replace(child))
        return events

    def _replace(self, child: Child) -> Died:
        reason = child.reap()
        self._children[self._children.index(child)] = self._fork(instead_of=child)
        if child.broken and child.broken.blameless:
            return Died(None, tuple(child.chunks), reason)
        return Died(child.chunks[0] if child.chunks else None, tuple(child.chunks)[1:], reason)

    def _fork(self, instead_of: Child | None = None) -> Child:
        here, there = Pipe()
        _bound_sending(here, self._hang_seconds)
        pulse = Pulse()
        parent = os.getpid()
        gc.freeze()  # so that no collection writes to pages that are shared
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            others = [child.connection for child in self._children if child is not instead_of]
            self._live(parent, [here, *others], there, pulse)
        there.close()
        return Child(pid, here, pulse, moved=time.monotonic())

    def _live(self, parent: int, foreign: list[Connection], own: Connection, pulse: Pulse) -> None:
        """The whole life of a forked process, which never comes back."""
        try:
            die_with_parent(parent)
            for connection in foreign:
                connection.close()
            self._in_child()
            self._serve(own, pulse)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)


def _bound_sending(connection: Connection, seconds: float) -> None:
    """Sending fails once nobody has read for so long: a process that is stopped does not stop its parent, too."""
    whole = int(seconds)
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        limit = struct.pack("ll", whole, int(1e6 * (seconds - whole)))
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
