"""What stands for a job's leases while it is being decided who gets which items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from jobs.application.calls import Caller, NotYet, Request, decode_body
from jobs.itemwork.dealer import Dealer

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 1.0
ASKING_EACH_SECOND = 200
"""So many workers ask for leases, as far as the longest wait allows."""


class Undealt:
    """Containers may start and end; their workers are told to wait. Safe for several threads.

    `clock` tells seconds since the job's work began, in whichever attempt.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._containers: dict[str, tuple[str, float]] = {}
        self._heard: dict[str, float] = {}
        """By container."""

    def add_container(self, node: str, container: str, capability: float) -> None:
        """A container was started on a node: it is its current one."""
        self._containers[node] = container, capability

    def end_container(self, node: str, container: str, blame: bool, reason: str) -> dict[str, str]:  # noqa: ARG002
        """A container is gone; it had no items."""
        if self._current(node) == container:
            del self._containers[node]
        return {}

    def note_starting(self, node: str) -> None:
        """Nothing is meant for any node yet."""

    def is_suspect(self, node: str, container: str) -> bool:  # noqa: ARG002 it works on nothing
        """Whether it works on what is suspected of ending containers."""
        return False

    def pop_excused(self) -> list[str]:
        """No item has ended any container."""
        return []

    def last_heard(self, node: str) -> float:
        """The second at which the current worker of the node last asked, -inf before it did."""
        return self._heard.get(self._current(node), -math.inf)

    def expire(self) -> None:
        """Nobody holds anything."""

    def hear(self, call: str, request: Request) -> Mapping[str, Any]:
        """Note who asks, and let them wait; NotYet for what only a worker with a lease says."""
        if call not in ("/take", "/heartbeat"):
            raise NotYet("it is being decided which node does what: try again")
        self._heard[decode_body(request.body, Caller).container_id] = self._clock()
        wait = min(max(SHORTEST_WAIT, len(self._containers) / ASKING_EACH_SECOND), LONGEST_WAIT)
        return {"wait": wait} if call == "/take" else {"holding": []}

    def hand_over(self, dealer: Dealer) -> None:
        """Let the dealer know which containers there are, and which of them wait already."""
        for node, (container, capability) in self._containers.items():
            dealer.add_container(node, container, capability)
            if container in self._heard:
                dealer.heartbeat(node, container)

    def _current(self, node: str) -> str:
        return self._containers.get(node, ("", 0.0))[0]
