"""How soon each worker of a pool would be done with some more pictures, by what it needed so far and what it holds.

pace = Pace(processes=2, batch=8)
pace.give("node1", "3:1-17", items=16, now=10.0)
pace.end("node1", "3:1-17", seconds=0.8)
pace.seconds_until_done("node1", pictures=1, now=11.0, asks=True)
"""

from __future__ import annotations

import math
from collections.abc import Collection

LEARNED = 0.3
"""What the last lease of a worker counts beside all before it."""
CHUNKS = 2
"""What a process of a worker has in hand goes before a picture that comes."""


class Pace:
    """Pure and not thread-safe. Each worker has so many `processes`, which look at up to `batch` pictures at once."""

    def __init__(self, processes: int, batch: int) -> None:
        self._processes, self._batch = processes, batch
        self._seconds: dict[str, float] = {}
        self._held: dict[str, dict[str, tuple[int, float]]] = {}

    def give(self, node: str, lease: str, items: int, now: float) -> None:
        """A worker gets a lease, which it begins after those that it has."""
        held = self._held.setdefault(node, {})
        held.pop(lease, None)
        begins = max([now, *(end for _, end in held.values())])
        held[lease] = (items, begins + items * self._of_one(node) / self._processes)

    def end(self, node: str, lease: str, seconds: float) -> None:
        """A lease is done, which took so long: one picture took a process its share of that."""
        items, _ = self._held.get(node, {}).pop(lease, (0, 0.0))
        if items and 0 < seconds < math.inf:
            took = seconds * min(self._processes, items) / items
            known = self._seconds.get(node, took)
            self._seconds[node] = known + LEARNED * (took - known)

    def keep(self, node: str, leases: Collection[str]) -> None:
        """A worker holds these and no others."""
        for lease in self._held.get(node, {}).keys() - set(leases):
            del self._held[node][lease]

    def forget(self, node: str) -> None:
        """A worker is lost; how fast its node is stays known."""
        self._held.pop(node, None)

    def is_busy(self, node: str) -> bool:
        """Whether a worker holds anything."""
        return bool(self._held.get(node))

    def seconds_until_done(self, node: str, pictures: int, now: float, asks: bool) -> float:
        """In which a worker has so many pictures done if it gets them as soon as it `asks` for work, or now if it does.

        One that is late with a lease is thought to need as long again.
        """
        ends = sorted(end for _, end in self._held.get(node, {}).values())
        waits = 0.0 if asks or not ends else abs(ends.pop(0) - now)
        one = self._of_one(node)
        before = min(max(ends[-1] - now, 0.0), CHUNKS * self._batch * one) if ends else 0.0
        return waits + before + math.ceil(pictures / self._processes) * one

    def _of_one(self, node: str) -> float:
        """Seconds of one process for one picture; a node that has done nothing is thought to be as fast as the best."""
        return self._seconds.get(node, min(self._seconds.values(), default=0.0))
