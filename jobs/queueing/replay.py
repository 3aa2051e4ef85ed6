"""One replay of YARN's capacity scheduler: what runs ends after the times that were drawn, and what waits begins.

As in YARN, an application becomes active when the masters of its queue and of its user leave room for it, or the
queue has none; others pass those that are not. A node that gets room offers it to the queue that has least of its share
first, and there to the active ones in their order. The first that finds no room on it reserves it, one node each:
nobody else gets that before.
"""

from __future__ import annotations

import heapq
import random
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf

from hadoop.rest.scheduler import Size
from jobs.queueing.scene import Node, Queue, Scene, Waiting

NOWHERE = -1
NOTHING = Size(0, 0)
Place = tuple[int, int, int]
"""The number of a node, MB and vcores."""


class Stage:
    """A scene in numbers, the same for all replays."""

    def __init__(self, scene: Scene) -> None:
        self.nodes = scene.nodes
        self.queues = [*scene.queues, *_missing(scene)]
        number = {queue.name: place for place, queue in enumerate(self.queues)}
        node_number = {node.name: place for place, node in enumerate(scene.nodes)}
        self.counts_vcores = scene.counts_vcores
        self.waiting = scene.waiting
        self.running = scene.running
        self.running_queue = [number[one.queue] for one in scene.running]
        self.waiting_queue = [number[one.queue] for one in scene.waiting]
        self.held: list[list[Place]] = [
            [(node_number[at.node_name], at.mb, at.vcores) for at in one.holds if at.node_name in node_number]
            for one in scene.running
        ]
        self.usable = [
            {place for place, node in enumerate(scene.nodes) if one.may_use(node) and self._is_large_enough(node, one)}
            for one in scene.waiting
        ]
        self.asked = [Size(one.mb, one.vcores) for one in scene.waiting]
        self.smallest = Size(
            min((one.mb for one in self.asked), default=0), min((one.vcores for one in self.asked), default=0)
        )

    def exceed(self, masters: Size, most: Size | None) -> bool:
        """Whether these masters have more than they may."""
        if most is None:
            return False
        return masters.mb > most.mb or (self.counts_vcores and masters.vcores > most.vcores)

    def _is_large_enough(self, node: Node, waiting: Waiting) -> bool:
        return node.total_mb >= waiting.mb and (not self.counts_vcores or node.total_vcores >= waiting.vcores)


def _missing(scene: Scene) -> list[Queue]:
    """Queues that something is in and YARN does not tell of (any more): without limits."""
    known = {queue.name for queue in scene.queues}
    named = {one.queue for one in scene.running} | {one.queue for one in scene.waiting}
    return [Queue(name) for name in sorted(named - known)]


def play(stage: Stage, left: Sequence[float], lasts: Sequence[float], dice: random.Random) -> list[float]:
    """When each of those that wait begins, in seconds from now, inf for never.

    `left` is how long each that runs goes on, and `lasts` how long each that waits will run.
    """
    return _Play(stage, left, lasts, dice).run()


class _Play:
    """The state of a replay; whatever runs has a number: those that run now first, then those that wait."""

    def __init__(self, stage: Stage, left: Sequence[float], lasts: Sequence[float], dice: random.Random) -> None:
        self.stage = stage
        self.lasts = lasts
        self.dice = dice
        self.free_mb = [node.free_mb for node in stage.nodes]
        self.free_vcores = [node.free_vcores for node in stage.nodes]
        self.ends = [(at, number) for number, at in enumerate(left)]
        heapq.heapify(self.ends)
        self.starts = [inf] * len(stage.waiting)
        self.unstarted = len(stage.waiting)
        self.seats: list[Place] = [(NOWHERE, 0, 0)] * len(stage.waiting)
        self.reserved = [NOWHERE] * len(stage.waiting)
        self.reserver = [NOWHERE] * len(stage.nodes)
        self.lines: list[list[int]] = [[] for _ in stage.queues]
        self.inactive: list[list[int]] = [[] for _ in stage.queues]
        self.able: list[list[int]] = []  # of each line those that may begin before something ends
        self.capped = [False] * len(stage.queues)
        self.used = [0] * len(stage.queues)
        self.masters = [NOTHING] * len(stage.queues)
        self.user_used: dict[tuple[int, str], int] = defaultdict(int)
        self.user_masters: dict[tuple[int, str], Size] = defaultdict(lambda: NOTHING)
        self._enter()

    def run(self) -> list[float]:
        """Play until all have begun or nothing ends any more."""
        for queue in range(len(self.lines)):
            self._activate(queue)
        self._offer(self._shuffled(), 0.0)
        while self.ends and self.unstarted:
            at, number = heapq.heappop(self.ends)
            queue, freed = self._end(number)
            if self._activate(queue) or self.capped[queue]:
                self.capped[queue] = False
                freed = self._shuffled()
            self._offer(freed, at)
        return self.starts

    def _enter(self) -> None:
        """Count what there is at the beginning."""
        stage = self.stage
        for queue, running in zip(stage.running_queue, stage.running, strict=True):
            self._take(queue, running.user, sum(at.mb for at in running.holds))
            self._take_master(queue, running.user, running.master)
        for number, (queue, waiting) in enumerate(zip(stage.waiting_queue, stage.waiting, strict=True)):
            (self.lines if waiting.is_active else self.inactive)[queue].append(number)
            if waiting.is_active:
                self._take_master(queue, waiting.user, stage.asked[number])

    def _shuffled(self) -> list[int]:
        """All nodes with room for anybody, in any order: that is how nodes tell YARN of themselves."""
        found = [place for place, free in enumerate(self.free_mb) if free >= self.stage.smallest.mb]
        self.dice.shuffle(found)
        return found

    def _take(self, queue: int, user: str, mb: int) -> None:
        self.used[queue] += mb
        self.user_used[queue, user] += mb

    def _take_master(self, queue: int, user: str, size: Size) -> None:
        self.masters[queue] = self.masters[queue].plus(size)
        self.user_masters[queue, user] = self.user_masters[queue, user].plus(size)

    def _free_master(self, queue: int, user: str, size: Size) -> None:
        self.masters[queue] = self.masters[queue].minus(size)
        self.user_masters[queue, user] = self.user_masters[queue, user].minus(size)

    def _end(self, number: int) -> tuple[int, list[int]]:
        """Give back what one held; its queue, and the nodes that have more room now."""
        stage, begun = self.stage, number - len(self.stage.running)
        if begun < 0:
            running, queue, held = stage.running[number], stage.running_queue[number], stage.held[number]
            self._take(queue, running.user, -sum(at.mb for at in running.holds))
            self._free_master(queue, running.user, running.master)
        else:
            waiting, queue, held = stage.waiting[begun], stage.waiting_queue[begun], [self.seats[begun]]
            self._take(queue, waiting.user, -waiting.mb)
            self._free_master(queue, waiting.user, stage.asked[begun])
        for node, mb, vcores in held:
            self.free_mb[node] += mb
            self.free_vcores[node] += vcores
        return queue, [node for node, _, _ in held]

    def _activate(self, queue: int) -> bool:
        """Let those become active for whose masters there is room; whether there were any."""
        line = self.inactive[queue]
        if not line or self._are_too_many(queue, self.stage.smallest):
            return False
        left = []
        for number in line:
            user, master = self.stage.waiting[number].user, self.stage.asked[number]
            if self._are_too_many(queue, master, user):
                left.append(number)
            else:
                self._take_master(queue, user, master)
                insort(self.lines[queue], number)
        self.inactive[queue] = left
        return len(left) < len(line)

    def _are_too_many(self, queue: int, master: Size, user: str | None = None) -> bool:
        """Whether one more is too much for the queue or the user; where the queue has none, it never is."""
        limits, exceed = self.stage.queues[queue], self.stage.exceed
        return self.masters[queue].mb > 0 and (
            exceed(self.masters[queue].plus(master), limits.masters_most)
            or (user is not None and exceed(self.user_masters[queue, user].plus(master), limits.user_masters_most))
        )

    def _offer(self, nodes: Iterable[int], now: float) -> None:
        """Give the room of these nodes away, and that of nodes whose reservation is not needed any more."""
        todo = list(nodes)
        self.able = [list(line) for line in self.lines]
        while todo and any(self.able):
            node = todo.pop()
            while (number := self._choose(node)) != NOWHERE:
                before = self._begin(number, node, now)
                if before not in (NOWHERE, node):
                    todo.append(before)

    def _choose(self, node: int) -> int:
        """Who begins on a node now, NOWHERE for nobody; then the first that waits for it has reserved it."""
        owner = self.reserver[node]
        if owner != NOWHERE:
            return owner if self._has_room(node, owner) and not self._is_capped(owner) else NOWHERE
        busy = [queue for queue, able in enumerate(self.able) if able]
        if len(busy) > 1:
            busy.sort(key=lambda queue: self.used[queue] / self.stage.queues[queue].share_mb)
        for queue in busy:
            for number in self.able[queue][:]:
                if self._is_capped(number):
                    self.able[queue].remove(number)  # until something ends
                    continue
                if node not in self.stage.usable[number]:
                    continue
                if self._has_room(node, number):
                    return number
                if self.reserved[number] == NOWHERE:
                    self.reserved[number], self.reserver[node] = node, number
                    return NOWHERE
        return NOWHERE

    def _has_room(self, node: int, number: int) -> bool:
        waiting = self.stage.waiting[number]
        return self.free_mb[node] >= waiting.mb and (
            not self.stage.counts_vcores or self.free_vcores[node] >= waiting.vcores
        )

    def _is_capped(self, number: int) -> bool:
        """Whether its queue or its user has so much that it must wait for others of them."""
        queue, waiting = self.stage.waiting_queue[number], self.stage.waiting[number]
        limits = self.stage.queues[queue]
        most = limits.user_most_mb.get(waiting.user, inf)
        is_capped = (
            self.used[queue] + waiting.mb > limits.most_mb or self.user_used[queue, waiting.user] + waiting.mb > most
        )
        if is_capped:
            self.capped[queue] = True
        return is_capped

    def _begin(self, number: int, node: int, now: float) -> int:
        """Let one begin there; the node that it had reserved, NOWHERE for no node."""
        queue, waiting, before = self.stage.waiting_queue[number], self.stage.waiting[number], self.reserved[number]
        self.lines[queue].remove(number)
        self.able[queue].remove(number)
        if before != NOWHERE:
            self.reserver[before] = NOWHERE
        self.free_mb[node] -= waiting.mb
        self.free_vcores[node] -= waiting.vcores
        self._take(queue, waiting.user, waiting.mb)
        self.seats[number] = (node, waiting.mb, waiting.vcores)
        self.starts[number] = now
        self.unstarted -= 1
        heapq.heappush(self.ends, (now + self.lasts[number], len(self.stage.running) + number))
        return before
