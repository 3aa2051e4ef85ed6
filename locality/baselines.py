"""What leases and policies are measured against: plans that are followed blindly, and a queue without a plan."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence

from locality.balance import check_blocks, check_capability
from locality.leases import Answer, Lease, Wait
from locality.types import Block, Part, Plan


def greedy_least_finish(blocks: Sequence[Block], capability: Mapping[str, float]) -> Plan:
    """Give each item, in their order, to the node that would finish first with it.

    argmin over nodes of (load + 1) / C_i: list scheduling (Graham 1969) on nodes of unequal speed, without regard to
    replicas. PlanError names an unusable block or capability.
    """
    check_blocks(blocks)
    check_capability(capability)
    parts: dict[str, list[Part]] = {node: [] for node in sorted(capability)}
    first = [(1 / capability[node], node) for node in parts if capability[node] > 0]
    heapq.heapify(first)
    for block in blocks:
        for item in range(block.items):
            _, node = first[0]
            parts[node].append(Part(block, item, 1))
            heapq.heapreplace(first, ((len(parts[node]) + 1) / capability[node], node))
    return Plan({node: tuple(mine) for node, mine in parts.items()})


class Static:
    """A plan followed blindly: each node gets its share once and whole, and what a lost node had is never done."""

    def __init__(self, plan: Plan) -> None:
        self._shares = {node: list(parts) for node, parts in plan.parts.items()}
        self._given: list[Lease] = []
        self.left = sum(plan.loads().values())

    def take(self, node: str, _now: float) -> Lease | Wait | None:
        """The share of `node`, the first time."""
        parts = self._shares.pop(node, [])
        if not parts:
            return None
        number = len(self._given)
        self._given.append(Lease(number, number, node, tuple(parts), math.inf, node))
        return self._given[-1]

    def commit(self, lease_id: int, _token: int, _now: float) -> Answer:
        """Always accepted."""
        self.left -= self._given[lease_id].items
        return Answer.ACCEPTED

    def lost(self, _node: str, _now: float) -> None:
        """Nothing is done about it."""


class FirstCome:
    """One queue for all: whoever asks gets the next `batch` items, wherever they lie; a loss puts them back."""

    def __init__(self, blocks: Sequence[Block], batch: int = 1, wait_seconds: float = 1.0) -> None:
        self._queue = deque(Part(block, item, 1) for block in blocks for item in range(block.items))
        self._batch = batch
        self._wait_seconds = wait_seconds
        self._running: dict[int, Lease] = {}
        self._given = 0
        self.left = len(self._queue)

    def take(self, node: str, now: float) -> Lease | Wait | None:
        """The next batch; Wait while others work on the last ones."""
        if not self._queue:
            return Wait(now + self._wait_seconds) if self.left else None
        parts = tuple(self._queue.popleft() for _ in range(min(self._batch, len(self._queue))))
        self._given += 1
        lease = self._running[self._given] = Lease(self._given, self._given, node, parts, math.inf, node)
        return lease

    def commit(self, lease_id: int, _token: int, _now: float) -> Answer:
        """Accepted unless the node was given up."""
        lease = self._running.pop(lease_id, None)
        if lease is None:
            return Answer.EXPIRED
        self.left -= lease.items
        return Answer.ACCEPTED

    def lost(self, node: str, _now: float) -> None:
        """What it was working on goes to the end of the queue."""
        for lease in [lease for lease in self._running.values() if lease.node == node]:
            del self._running[lease.lease_id]
            self._queue += lease.parts
