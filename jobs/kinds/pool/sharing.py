"""Whose turn it is among jobs that share workers: what each was given, divided by its weight, stays alike.

Start-time fair queueing (Goyal, Vin and Cheng, 1996): of two jobs that always have work, what each was given, divided
by its weight, differs by no more than one lease of each, divided so. A job that had nothing to give saves nothing up.
"""

from __future__ import annotations


class Shares:
    """Pure and not thread-safe; weights are above 0, amounts 0 or more."""

    def __init__(self) -> None:
        self._now = 0.0
        self._weights: dict[str, float] = {}
        self._next: dict[str, float] = {}
        self._resting: set[str] = set()

    def add(self, name: str, weight: float) -> None:
        """A job begins beside those that are furthest behind, whatever they were given before."""
        self._weights[name], self._next[name] = weight, self._now

    def remove(self, name: str) -> None:
        """A job has ended."""
        del self._weights[name], self._next[name]
        self._resting.discard(name)

    def order(self) -> list[str]:
        """All jobs, the one whose turn it is first."""
        return sorted(self._next, key=self._start)

    def charge(self, name: str, amount: float) -> None:
        """A job was given so much work."""
        start = self._start(name)
        self._now = max(self._now, start)
        self._next[name] = start + amount / self._weights[name]
        self._resting.discard(name)

    def rest(self, name: str) -> None:
        """A job had nothing to give when it was its turn."""
        self._resting.add(name)

    def _start(self, name: str) -> float:
        """The moment, in work by weight, at which the next lease of a job begins."""
        return max(self._next[name], self._now) if name in self._resting else self._next[name]
