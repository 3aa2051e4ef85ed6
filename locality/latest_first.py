"""Whatever ends last, found in O(log n) although every estimate keeps changing."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item", int, str)
LOOKS = 32


class LatestFirst(Generic[Item]):
    """Items by the time they are thought to end at; an estimate that was too late is corrected when it is met."""

    def __init__(self) -> None:
        self._ends: dict[Item, float] = {}
        self._heap: list[tuple[float, Item]] = []

    def put(self, item: Item, ends: float) -> None:
        """Add `item`, or change when it ends."""
        if self._ends.get(item) == ends:
            return
        self._ends[item] = ends
        heapq.heappush(self._heap, (-ends, item))
        if len(self._heap) > 2 * len(self._ends) + LOOKS:  # mostly estimates that hold no more
            self._heap = [(-ends, item) for item, ends in self._ends.items()]
            heapq.heapify(self._heap)

    def drop(self, item: Item) -> None:
        """Forget `item`, which need not be there."""
        self._ends.pop(item, None)

    def first(self, estimate: Callable[[Item], float]) -> Item | None:
        """The item that ends last, None when there is none.

        An estimate that became earlier is corrected here; whoever knows of one that became later has to `put` it.
        After `LOOKS` corrections the one on top is good enough: where all estimates shrink a little with
        everything that is learnt, each call would correct all of them.
        """
        looks = LOOKS
        while self._heap:
            ends, item = self._heap[0]
            if self._ends.get(item) != -ends:
                heapq.heappop(self._heap)
                continue
            newest = estimate(item)
            if newest >= -ends or not looks:
                return item
            looks -= 1
            self._ends[item] = newest
            heapq.heapreplace(self._heap, (-newest, item))
        return None
