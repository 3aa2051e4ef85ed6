"""The loss of a run over its steps, thinned so that it stays small however long the run is."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping

from learning.lead.leader import Member

MOST_POINTS = 500

Point = tuple[int, float]
"""Steps that are done, and the loss of the last of them."""


class LossCurve:
    """At most MOST_POINTS points, about as far apart everywhere, and the newest one. By any thread."""

    def __init__(self) -> None:
        self._kept: list[Point] = []
        self._newest: Point | None = None
        self._apart = 1.0
        self._lock = threading.Lock()

    def look(self, members: Collection[str], told: Mapping[str, Member]) -> None:
        """Take what the member knows that is farthest, of those that compute together."""
        known = [told[name].done for name in members if name in told]
        points = [(one.steps, one.loss) for one in known if one.loss is not None]
        if points:
            self.add(*max(points))

    def add(self, step: int, loss: float) -> None:
        """A point; a run that went back forgets what it had from there on.

        >>> curve = LossCurve()
        >>> for step in (1, 2, 3, 2):
        ...     curve.add(step, 1 / step)
        >>> curve.points()
        [(1, 1.0), (2, 0.5)]
        """
        point = step, float(f"{loss:.6g}")
        with self._lock:
            while self._kept and self._kept[-1][0] >= step:
                self._kept.pop()
            self._newest = point
            if not self._kept or step - self._kept[-1][0] >= self._apart:
                self._kept.append(point)
            if len(self._kept) >= MOST_POINTS:
                self._kept = self._kept[::2]
                self._apart = (self._kept[-1][0] - self._kept[0][0]) / (len(self._kept) - 1)

    def points(self) -> list[Point]:
        """By step."""
        with self._lock:
            last = [self._newest] if self._newest and self._newest not in self._kept[-1:] else []
            return [*self._kept, *last]

    def since(self, step: int, most: int) -> list[Point]:
        """At most so many of those after a step, the newest one among them."""
        found = [point for point in self.points() if point[0] > step]
        every = -(-len(found) // most) or 1
        return found[::-every][::-1]
