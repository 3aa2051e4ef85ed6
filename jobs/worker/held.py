"""What a worker holds: leases in pieces, some waiting, some with a process, some done."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from jobs.itemwork.messages import Group, Item, Task
from jobs.worker.child import Done

CHUNK_BYTES = 64 * 1024 * 1024
"""Of one chunk, as files, so that reading ahead does not fill the memory."""


@dataclass
class Held:
    """One lease; `waiting` pieces are done as they come, `suspects` one at a time and apart from everything else.

    `running` counts the pieces that a process has; `begun` and `ended` span the work, as monotonic seconds. An `urgent`
    one goes before all others.
    """

    lease: str
    urgent: bool = False
    waiting: deque[tuple[Item, ...]] = field(default_factory=deque)
    suspects: deque[tuple[Item, ...]] = field(default_factory=deque)
    running: int = 0
    messages: list[bytes] = field(default_factory=list)
    begun: float | None = None
    ended: float = 0.0
    bytes_read: int = 0

    @classmethod
    def of(cls, task: Task, batch: int, processes: int) -> Held:
        """A lease of which nothing is done."""
        held = cls(task.lease, task.urgent)
        held.add(task.groups, batch, processes)
        return held

    def add(self, groups: Iterable[Group], batch: int, processes: int) -> None:
        """More to do: suspect groups whole, the rest in pieces for all processes."""
        for group in groups:
            if group.suspect:
                self.suspects.append(group.items)
            else:
                self.waiting.extend(pieces(group.items, batch, processes))

    def finish(self, done: Done) -> None:
        """A piece of it is done."""
        self.running -= 1
        self.messages += done.messages
        self.bytes_read += done.bytes_read
        self.begun = done.begun if self.begun is None else min(self.begun, done.begun)
        self.ended = max(self.ended, done.ended)

    @property
    def complete(self) -> bool:
        """Whether every image has its row, once the deaths of processes are told."""
        return not (self.waiting or self.suspects or self.running)

    @property
    def seconds(self) -> float:
        """From the first reading to the last row."""
        return 0.0 if self.begun is None else self.ended - self.begun


def pieces(items: Sequence[Item], batch: int, processes: int) -> Iterator[tuple[Item, ...]]:
    """About equal ones of at most `batch` images and CHUNK_BYTES, and one for each process if there are enough."""
    count = min(len(items), max(processes, -(-len(items) // batch)))
    edges = [len(items) * number // count for number in range(count + 1)] if count else []
    for first, last in pairwise(edges):
        yield from _of_bytes(items[first:last])


def _of_bytes(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    some: list[Item] = []
    for item in items:
        if some and sum(one.length for one in some) + item.length > CHUNK_BYTES:
            yield tuple(some)
            some = []
        some.append(item)
    yield tuple(some)
