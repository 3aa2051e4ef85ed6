"""A scene in numbers, the same for all replays of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from operator import add, le, mul, sub

from hadoop.rest.amounts import MEMORY, VCORES, Amounts
from hadoop.rest.amounts import add as sum_up
from jobs.queueing.scene import Queue, Scene

LEAST_SHARE = 1e-9
"""Of the cluster, for a queue that is guaranteed nothing."""
Size = tuple[float, ...]
"""So much of each type of a stage, in the order of its types."""
Place = tuple[int, Size]
"""The number of a node, and what is taken there."""


class Stage:
    """A scene in numbers, the same for all replays: of all types that decide and that somebody has or asks for."""

    def __init__(self, scene: Scene) -> None:
        self.types = _types(scene)
        self.nodes = scene.nodes
        self.queues = [*scene.queues, *_missing(scene)]
        number = {queue.name: place for place, queue in enumerate(self.queues)}
        node_number = {node.name: place for place, node in enumerate(scene.nodes)}
        self.waiting = scene.waiting
        self.running = scene.running
        self.running_queue = [number[one.queue] for one in scene.running]
        self.waiting_queue = [number[one.queue] for one in scene.waiting]
        self.held: list[list[Place]] = [
            [(node_number[at.node_name], self.size(at.amounts)) for at in one.holds if at.node_name in node_number]
            for one in scene.running
        ]
        self.has = [self.size(sum_up(at.amounts for at in one.holds)) for one in scene.running]
        self.masters = [self.size(one.master) for one in scene.running]
        self.asked = [self.size(one.asks) for one in scene.waiting]
        self.free = [self.size(node.free) for node in scene.nodes]
        total = [self.size(node.total) for node in scene.nodes]
        self.usable = [
            {place for place, node in enumerate(scene.nodes) if one.may_use(node) and has_room(total[place], asked)}
            for one, asked in zip(scene.waiting, self.asked, strict=True)
        ]
        self.nothing = self.size({})
        self.smallest = tuple(min(column) for column in zip(*self.asked, strict=True)) or self.nothing
        least = zip(self.types, self.smallest, strict=True)
        self.offered = tuple(size if name in (MEMORY, VCORES) else 0.0 for name, size in least)
        """What a node has free that is offered to anybody: of other types YARN has no least."""
        self._set_limits(total)

    def _set_limits(self, total: Sequence[Size]) -> None:
        """What queues and users may have, and the part of the cluster that one of each type is."""
        counted = [size for node, size in zip(self.nodes, total, strict=True) if not node.label] or total
        self.part = tuple(1 / whole if whole else 0.0 for whole in map(sum, zip(*counted, strict=True)))
        self.share = [max(LEAST_SHARE, self.part_of(self.size(queue.share))) for queue in self.queues]
        self.most = [self.limit(queue.most) for queue in self.queues]
        self.masters_most = [self.limit(queue.masters_most) for queue in self.queues]
        self.user_masters_most = [self.limit(queue.user_masters_most) for queue in self.queues]
        self.user_most = {
            (place, user): self.limit(most)
            for place, queue in enumerate(self.queues)
            for user, most in queue.user_most.items()
        }

    def size(self, amounts: Amounts) -> Size:
        """Amounts as numbers."""
        return tuple(float(amounts.get(name, 0)) for name in self.types)

    def limit(self, amounts: Amounts) -> Size:
        """The most as numbers: what is not named has no limit."""
        return tuple(float(amounts.get(name, inf)) for name in self.types)

    def part_of(self, size: Size) -> float:
        """The part of the cluster that it is of the type of which it is the largest part."""
        return max(map(mul, size, self.part), default=0.0)


def has_room(free: Size, asked: Size) -> bool:
    """Whether there is so much of each type."""
    return all(map(le, asked, free))


def plus(first: Size, second: Size) -> Size:
    """Both together."""
    return tuple(map(add, first, second))


def minus(first: Size, second: Size) -> Size:
    """The first without the second."""
    return tuple(map(sub, first, second))


def _types(scene: Scene) -> tuple[str, ...]:
    """The types that decide: memory, and where all do, cores and whatever somebody has or asks for."""
    if not scene.counts_all:
        return (MEMORY,)
    amounts = [at.amounts for one in scene.running for at in one.holds] + [one.asks for one in scene.waiting]
    others = {name for one in amounts for name, count in one.items() if count}
    return (MEMORY, VCORES, *sorted(others - {MEMORY, VCORES}))


def _missing(scene: Scene) -> list[Queue]:
    """Queues that something is in and YARN does not tell of (any more): without limits."""
    known = {queue.name for queue in scene.queues}
    named = {one.queue for one in scene.running} | {one.queue for one in scene.waiting}
    return [Queue(name) for name in sorted(named - known)]
