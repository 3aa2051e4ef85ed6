"""Items that wait for a node: the owner reads from the front, others are given from the back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from locality.types import Part

LOOK = 64
"""So many parts at the back are compared for one that is cheap to read, however long the queue is."""


class PartQueue:
    """Parts in reading order, cut at item borders where less is taken than a part holds."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self._parts = deque(part for part in parts if part.items)
        self.items = sum(part.items for part in self._parts)

    def add(self, parts: Iterable[Part]) -> None:
        """Put `parts` at the back."""
        for part in parts:
            self._parts.append(part)
            self.items += part.items

    def first(self, items: int) -> list[Part]:
        """Take `items` items from the front, or all if there are fewer."""
        taken: list[Part] = []
        left = min(items, self.items)
        self.items -= left
        while left:
            part = self._parts.popleft()
            if part.items > left:
                part, rest = _cut(part, left)
                self._parts.appendleft(rest)
            taken.append(part)
            left -= part.items
        return taken

    def last(self, items: int, price: Callable[[Part], float]) -> list[Part]:
        """Take `items` items, or all if there are fewer: of the `LOOK` parts at the back the cheapest first."""
        taken: list[Part] = []
        wanted = min(items, self.items)
        while wanted:
            found = self._cheapest(wanted, price)
            taken += found
            wanted -= _items(found)
        return taken

    def _cheapest(self, items: int, price: Callable[[Part], float]) -> list[Part]:
        seen = [self._parts.pop() for _ in range(min(LOOK, len(self._parts)))]
        taken, kept = [], dict(enumerate(seen))
        for place in sorted(kept, key=lambda place: price(seen[place])):
            if not items:
                break
            part = kept.pop(place)
            if part.items > items:
                kept[place], part = _cut(part, part.items - items)
            taken.append(part)
            items -= part.items
        self._parts.extend(kept[place] for place in sorted(kept, reverse=True))
        self.items -= _items(taken)
        return taken


def _items(parts: Iterable[Part]) -> int:
    return sum(part.items for part in parts)


def _cut(part: Part, items: int) -> tuple[Part, Part]:
    """The first `items` items of a part, and the others."""
    return Part(part.block, part.first, items), Part(part.block, part.first + items, part.items - items)
