"""What stands for a job's leases while it is being decided who gets which items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NoReturn

from jobs.application.calls import Caller, NotYet, Request, decode_body
from jobs.itemwork.dealer import Dealer

ASKING = ("/take", "/heartbeat")
"""The calls of a worker that has nothing to do."""


class Undealt:
    """Containers may start and end; their workers are told to ask again. Safe for several threads.

    `clock` tells seconds since the job's work began, in whichever attempt.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._containers: dict[str, tuple[str, float]] = {}
        self._heard: dict[str, float] = {}

    def add_container(self, node: str, container: str, capability: float) -> None:
        """A container was started on a node: it is its current one."""
        self._containers[node] = container, capability

    def end_container(self, node: str, container: str, blame: bool, reason: str) -> dict[str, str]:  # noqa: ARG002
        """A container is gone; it had no items."""
        if self._containers.get(node, ("", 0.0))[0] == container:
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
        """The second at which a worker of the node last asked, -inf before it did."""
        return self._heard.get(node, -math.inf)

    def expire(self) -> None:
        """Nobody holds anything."""

    def hear(self, call: str, request: Request) -> NoReturn:
        """Note who asks; NotYet."""
        if call in ASKING:
            self._heard[decode_body(request.body, Caller).node_name] = self._clock()
        raise NotYet("it is being decided which node does what: try again")

    def hand_over(self, dealer: Dealer) -> None:
        """Let the dealer know which containers there are, and which of them wait already."""
        containers: Mapping[str, tuple[str, float]] = self._containers
        for node, (container, capability) in containers.items():
            dealer.add_container(node, container, capability)
            if node in self._heard:
                dealer.heartbeat(node, container)
