"""Leases and plans against invented clusters: wrong speeds, a node that slows down, a node that is lost."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from locality.cost import AccessCost
from locality.leases import Answer, Lease, Wait
from locality.types import Block, Part

NEVER = math.inf
VAIN_ASKS = 10_000
"""So often each node may ask in vain while nobody works and no loss is still to be seen: then nothing will happen."""


@dataclass(frozen=True)
class Machine:
    """A node as it really is: items per second from `begins_at` on, divided by `slower_by` from `slower_at` on.

    It is gone at `lost_at`.
    """

    items_per_second: float
    slower_at: float = NEVER
    slower_by: float = 1.0
    lost_at: float = NEVER
    begins_at: float = 0.0

    def ends(self, begun: float, work: float) -> float:
        """When work of so many ordinary items ends; NEVER when the node is lost before."""
        begun = max(begun, self.begins_at)
        before = max(0.0, self.slower_at - begun) * self.items_per_second
        if work <= before:
            ends = begun + work / self.items_per_second
        else:
            ends = max(begun, self.slower_at) + (work - before) * self.slower_by / self.items_per_second
        return ends if ends <= self.lost_at else NEVER

    def done_by(self, time: float) -> float:
        """Ordinary items that the node can do until `time` if it never rests."""
        seconds = max(0.0, min(time, self.lost_at) - self.begins_at)
        late = min(seconds, max(0.0, min(time, self.lost_at) - self.slower_at))
        return self.items_per_second * (seconds - late + late / self.slower_by)


@dataclass(frozen=True)
class Cluster:
    """Machines by node name, what really happens on them, and how soon a loss is seen.

    work             of an item of each block, in ordinary items; 1 where none is given
    cost             what reading costs, None: nothing
    request_seconds  between the end of a batch and the start of the next
    silence_seconds  after which a lost node is known to be lost
    """

    machines: Mapping[str, Machine]
    work: Mapping[str, float] = field(default_factory=dict)
    cost: AccessCost | None = None
    request_seconds: float = 0.0
    silence_seconds: float = 10.0

    def bound(self, blocks: Iterable[Block]) -> float:
        """Seconds that no division can beat, even one that knows everything: the least T with done(T) >= work.

        done(T) = sum over nodes of the integral of their true speed from their beginning to T, a lost node's until its
        loss.
        """
        work = math.fsum(block.items * self.work.get(block.name, 1.0) for block in blocks)
        low, high = 0.0, 1.0
        while self._done_by(high) < work:
            low, high = high, 2 * high
            if math.isinf(high):
                return NEVER
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self._done_by(middle) >= work else (middle, high)
        return high

    def ends(self, node: str, parts: Sequence[Part], now: float) -> float:
        """When `node` has read and done `parts`."""
        reading = math.fsum(self._reading_seconds(node, part) for part in parts)
        work = math.fsum(part.items * self.work.get(part.block.name, 1.0) for part in parts)
        return self.machines[node].ends(now + self.request_seconds + reading, work)

    def _done_by(self, time: float) -> float:
        return math.fsum(machine.done_by(time) for machine in self.machines.values())

    def _reading_seconds(self, node: str, part: Part) -> float:
        if self.cost is None or not part.block.replicas:
            return 0.0
        return part.size_bytes * min(self.cost.seconds_per_byte(node, holder) for holder in part.block.replicas)


class Source(Protocol):
    """Where nodes get their work from: leases, or something to compare them with."""

    @property
    def left(self) -> int:
        """Items not committed."""

    def take(self, node: str, now: float, /) -> Lease | Wait | None:
        """The next batch of a node."""

    def commit(self, lease_id: int, token: int, now: float, /) -> Answer:
        """What becomes of a batch that a node has done."""

    def lost(self, node: str, now: float, /) -> object:
        """A node is known to be lost."""


@dataclass
class Outcome:
    """What happened; `makespan_seconds` is NEVER when the work did not end.

    `moved_bytes` were read from other nodes, `copied_items` begun a second time and `stolen_items` begun by a
    node that they were not planned for; `items` counts those committed, per node; `operations` are the events.
    """

    makespan_seconds: float = NEVER
    items: Counter[str] = field(default_factory=Counter)
    committed: list[Part] = field(default_factory=list)
    stolen_items: int = 0
    copied_items: int = 0
    moved_bytes: float = 0.0
    refused: int = 0
    operations: int = 0


def simulate(source: Source, cluster: Cluster) -> Outcome:
    """Let every machine of `cluster` take from `source` and commit to it until all is done, or nothing happens."""
    return _Simulation(source, cluster).run()


class _Simulation:
    """Events in the order of time; of those at one moment, the first that was known."""

    def __init__(self, source: Source, cluster: Cluster) -> None:
        self._source = source
        self._cluster = cluster
        self._events: list[tuple[float, int, str, Lease | None]] = []
        self._known = 0
        self._begun: set[int] = set()
        self._vain = 0
        losses = [m.lost_at + cluster.silence_seconds for m in cluster.machines.values() if m.lost_at < NEVER]
        self._last_loss = max(losses, default=0.0)
        self._outcome = Outcome()

    def run(self) -> Outcome:
        for node, machine in self._cluster.machines.items():
            self._at(machine.begins_at, node)
            if machine.lost_at < NEVER:
                self._at(machine.lost_at + self._cluster.silence_seconds, node)
        while self._events and self._source.left:
            now, _, node, lease = heapq.heappop(self._events)
            self._step(now, node, lease)
            if self._vain > VAIN_ASKS * len(self._cluster.machines) and self._nothing_comes(now):
                break
        return self._outcome

    def _nothing_comes(self, now: float) -> bool:
        """Whether all that is known to happen is that nodes ask again."""
        self._vain = 0
        return now > self._last_loss and all(lease is None for _, _, _, lease in self._events)

    def _at(self, time: float, node: str, lease: Lease | None = None) -> None:
        self._known += 1
        heapq.heappush(self._events, (time, self._known, node, lease))

    def _step(self, now: float, node: str, lease: Lease | None) -> None:
        self._outcome.operations += 1
        if now > self._cluster.machines[node].lost_at:
            if lease is None:
                self._source.lost(node, now)
            return
        if lease is not None:
            self._commit(lease, now)
        if self._source.left:
            self._take(node, now)

    def _commit(self, lease: Lease, now: float) -> None:
        outcome = self._outcome
        if self._source.commit(lease.lease_id, lease.token, now) is not Answer.ACCEPTED:
            outcome.refused += 1
            return
        outcome.items[lease.node] += lease.items
        outcome.committed += lease.parts
        if not self._source.left:
            outcome.makespan_seconds = now

    def _take(self, node: str, now: float) -> None:
        answer = self._source.take(node, now)
        if isinstance(answer, Wait):
            self._vain += 1
            self._at(answer.until, node)
        elif answer is not None:
            self._vain = 0
            self._count(answer)
            ends = self._cluster.ends(node, answer.parts, now)
            if ends < NEVER:
                self._at(ends, node, answer)

    def _count(self, lease: Lease) -> None:
        outcome = self._outcome
        outcome.moved_bytes += math.fsum(p.size_bytes for p in lease.parts if lease.node not in p.block.replicas)
        outcome.stolen_items += lease.items * (lease.origin != lease.node)
        outcome.copied_items += lease.items * (lease.lease_id in self._begun)
        self._begun.add(lease.lease_id)
