"""The moment after a ResourceManager has become active: it knows no node until each has registered with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

FIRST_SECONDS, SETTLE_SECONDS = 30.0, 3.0
"""How long the first node may take at least, and after how long without a further one all are there."""
LATE = 1.5
"""Nodes try at intervals, each of which may be so many times as long."""
PAUSE_SECONDS = 0.5
T = TypeVar("T")


class Registration:
    """Waits for nodes that register anew. `interval` is the seconds after which a node tries again; `say` is told.

    Where one has waited in vain, it waits no more until it has seen a node.
    """

    def __init__(
        self,
        interval: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._first_seconds = max(FIRST_SECONDS, 2 * LATE * interval)
        self._settle_seconds = max(SETTLE_SECONDS, LATE * interval)
        self._say = say
        self._clock = clock
        self._sleep = sleep
        self._waits = True

    def ask(self, ask: Callable[[], Sequence[T]], has_registered: Callable[[T], bool]) -> Sequence[T]:
        """All nodes that YARN knows, as `ask` gives them. Where none has registered at first, they are waited for."""
        nodes = ask()
        if self._waits and not any(map(has_registered, nodes)):
            self._say(f"YARN knows no NodeManager yet; waiting up to {self._first_seconds:.0f} s for the first one")
            nodes = self._await_all(ask, has_registered)
        self._waits = any(map(has_registered, nodes))
        return nodes

    def _await_all(self, ask: Callable[[], Sequence[T]], has_registered: Callable[[T], bool]) -> Sequence[T]:
        """The nodes, once no more have come for a while; at most twice as long as the first one may take."""
        begun = changed = now = self._clock()
        before = 0
        while True:
            nodes = ask()
            if (count := sum(map(has_registered, nodes))) != before:
                before, changed = count, now
            quiet = self._settle_seconds if count else self._first_seconds
            if now - changed >= quiet or now - begun >= 2 * self._first_seconds:
                return nodes
            self._sleep(PAUSE_SECONDS)
            now = self._clock()
