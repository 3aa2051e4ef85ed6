"""How fast nodes are: as seen, and where nothing was seen yet, as their capability promises."""

from __future__ import annotations

import math

NEWEST = 0.5
"""Weight of what was seen last."""
LEAST = 1e-9
"""No node counts as slower, in items per second, so that everything ends at some time."""


class Speeds:
    """Items per second; capability may be in any unit, because those seen say what one unit is worth."""

    def __init__(self, highest: float) -> None:
        """`highest`: about the highest capability there is, so that sums stay finite."""
        self._highest = highest
        self._capability: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._most: dict[str, float] = {}
        self._sum_seen = self._capability_seen = self._capability_unseen = 0.0

    def add(self, node: str, capability: float) -> None:
        """Count a node of which nothing was seen."""
        self._capability[node] = capability / self._highest
        self._capability_unseen += self._capability[node]

    def remove(self, node: str) -> None:
        """Count a node no more, in O(n): sums made anew have no residue of rounding that would pass for a speed."""
        del self._capability[node]
        self._seen.pop(node, None)
        self._most.pop(node, None)
        self._sum_seen = sum(self._seen.values())
        self._capability_seen = sum(self._capability[seen] for seen in self._seen)
        self._capability_unseen = sum(self._capability[other] for other in self._capability.keys() - self._seen)

    def see(self, node: str, items_per_second: float) -> None:
        """A batch was done at this speed: the mean of it and of what was known, later ones counting more."""
        known = min(self._seen.get(node, math.inf), self._most.pop(node, math.inf))
        if math.isfinite(known):
            items_per_second = known + NEWEST * (items_per_second - known)
        if node not in self._seen:
            self._capability_unseen -= self._capability[node]
            self._capability_seen += self._capability[node]
        self._sum_seen += items_per_second - self._seen.get(node, 0.0)
        self._seen[node] = items_per_second

    def at_most(self, node: str, items_per_second: float) -> None:
        """A batch is not done although it would be at this speed; that says nothing of other nodes."""
        if items_per_second < self.of(node):
            self._most[node] = items_per_second

    def of(self, node: str) -> float:
        """Of one node: seen, or its capability times what one unit of it is worth on nodes seen."""
        seen = self._seen.get(node)
        speed = self._capability[node] * self._scale() if seen is None else seen
        return max(LEAST, min(speed, self._most.get(node, math.inf)))

    def total(self) -> float:
        """Of all nodes together, those that are late at the speed they had."""
        return self._sum_seen + self._capability_unseen * self._scale()

    def _scale(self) -> float:
        return self._sum_seen / self._capability_seen if self._capability_seen > 0 else 1.0
