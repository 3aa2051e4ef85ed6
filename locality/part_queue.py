"""Pictures that wait for a node: the owner reads from the front, others are given from the back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from locality.types import Part

LOOK = 64
"""So many parts at the back are compared for one that is cheap to read, however long the queue is."""


class PartQueue:
    """Parts in reading order, cut at image borders where less is taken than a part holds."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self._parts = deque(part for part in parts if part.images)
        self.images = sum(part.images for part in self._parts)

    def add(self, parts: Iterable[Part]) -> None:
        """Put `parts` at the back."""
        for part in parts:
            self._parts.append(part)
            self.images += part.images

    def first(self, images: int) -> list[Part]:
        """Take `images` pictures from the front, or all if there are fewer."""
        taken: list[Part] = []
        left = min(images, self.images)
        self.images -= left
        while left:
            part = self._parts.popleft()
            if part.images > left:
                part, rest = _cut(part, left)
                self._parts.appendleft(rest)
            taken.append(part)
            left -= part.images
        return taken

    def last(self, images: int, price: Callable[[Part], float]) -> list[Part]:
        """Take `images` pictures, or all if there are fewer: of the `LOOK` parts at the back the cheapest first."""
        taken: list[Part] = []
        wanted = min(images, self.images)
        while wanted:
            found = self._cheapest(wanted, price)
            taken += found
            wanted -= _images(found)
        return taken

    def _cheapest(self, images: int, price: Callable[[Part], float]) -> list[Part]:
        seen = [self._parts.pop() for _ in range(min(LOOK, len(self._parts)))]
        taken, kept = [], dict(enumerate(seen))
        for place in sorted(kept, key=lambda place: price(seen[place])):
            if not images:
                break
            part = kept.pop(place)
            if part.images > images:
                kept[place], part = _cut(part, part.images - images)
            taken.append(part)
            images -= part.images
        self._parts.extend(kept[place] for place in sorted(kept, reverse=True))
        self.images -= _images(taken)
        return taken


def _images(parts: Iterable[Part]) -> int:
    return sum(part.images for part in parts)


def _cut(part: Part, images: int) -> tuple[Part, Part]:
    """The first `images` pictures of a part, and the others."""
    return Part(part.block, part.first, images), Part(part.block, part.first + images, part.images - images)
