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

from jobs.queueing.scene import Running, Waiting
from jobs.queueing.stage import Place, Size, Stage, has_room, minus, plus

NOWHERE = -1


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
        self.free = list(stage.free)
        self.ends = [(at, number) for number, at in enumerate(left)]
        heapq.heapify(self.ends)
        self.starts = [inf] * len(stage.waiting)
        self.unstarted = len(stage.waiting)
        self.seats: list[Place] = [(NOWHERE, stage.nothing)] * len(stage.waiting)
        self.reserved = [NOWHERE] * len(stage.waiting)
        self.reserver = [NOWHERE] * len(stage.nodes)
        self.lines: list[list[int]] = [[] for _ in stage.queues]
        self.inactive: list[list[int]] = [[] for _ in stage.queues]
        self.able: list[list[int]] = []  # of each line those that may begin before something ends
        self.capped = [False] * len(stage.queues)
        self.used = [stage.nothing] * len(stage.queues)
        self.masters = [stage.nothing] * len(stage.queues)
        self.user_used: dict[tuple[int, str], Size] = defaultdict(lambda: stage.nothing)
        self.user_masters: dict[tuple[int, str], Size] = defaultdict(lambda: stage.nothing)
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
        for number, (queue, running) in enumerate(zip(stage.running_queue, stage.running, strict=True)):
            if not running.label:
                self._take(queue, running.user, stage.has[number])
                self._take_master(queue, running.user, stage.masters[number])
        for number, (queue, waiting) in enumerate(zip(stage.waiting_queue, stage.waiting, strict=True)):
            may_begin = waiting.is_active or waiting.label  # limits of nodes with a label are not known
            (self.lines if may_begin else self.inactive)[queue].append(number)
            if waiting.is_active and not waiting.label:
                self._take_master(queue, waiting.user, stage.asked[number])

    def _shuffled(self) -> list[int]:
        """All nodes with room for anybody, in any order: that is how nodes tell YARN of themselves."""
        found = [place for place, free in enumerate(self.free) if has_room(free, self.stage.offered)]
        self.dice.shuffle(found)
        return found

    def _take(self, queue: int, user: str, size: Size) -> None:
        self.used[queue] = plus(self.used[queue], size)
        self.user_used[queue, user] = plus(self.user_used[queue, user], size)

    def _take_master(self, queue: int, user: str, size: Size) -> None:
        self.masters[queue] = plus(self.masters[queue], size)
        self.user_masters[queue, user] = plus(self.user_masters[queue, user], size)

    def _leave(self, queue: int, one: Running | Waiting, had: Size, master: Size) -> None:
        """Count no more what one had in its queue, nor its master."""
        if one.label:
            return
        of_user = queue, one.user
        self.used[queue] = minus(self.used[queue], had)
        self.user_used[of_user] = minus(self.user_used[of_user], had)
        self.masters[queue] = minus(self.masters[queue], master)
        self.user_masters[of_user] = minus(self.user_masters[of_user], master)

    def _end(self, number: int) -> tuple[int, list[int]]:
        """Give back what one held; its queue, and the nodes that have more room now."""
        stage, begun = self.stage, number - len(self.stage.running)
        if begun < 0:
            queue, held = stage.running_queue[number], stage.held[number]
            self._leave(queue, stage.running[number], stage.has[number], stage.masters[number])
        else:
            queue, held = stage.waiting_queue[begun], [self.seats[begun]]
            self._leave(queue, stage.waiting[begun], stage.asked[begun], stage.asked[begun])
        for node, size in held:
            self.free[node] = plus(self.free[node], size)
        return queue, [node for node, _ in held]

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
        stage, masters = self.stage, self.masters[queue]
        return any(masters) and not (
            has_room(stage.masters_most[queue], plus(masters, master))
            and (user is None or has_room(stage.user_masters_most[queue], plus(self.user_masters[queue, user], master)))
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
            busy.sort(key=lambda queue: self.stage.part_of(self.used[queue]) / self.stage.share[queue])
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
        return has_room(self.free[node], self.stage.asked[number])

    def _is_capped(self, number: int) -> bool:
        """Whether its queue or its user has so much that it must wait for others of them."""
        stage, queue, waiting = self.stage, self.stage.waiting_queue[number], self.stage.waiting[number]
        if waiting.label:
            return False
        asked, users_most = stage.asked[number], stage.user_most.get((queue, waiting.user))
        is_capped = not has_room(stage.most[queue], plus(self.used[queue], asked)) or (
            users_most is not None and not has_room(users_most, plus(self.user_used[queue, waiting.user], asked))
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
        asked = self.stage.asked[number]
        self.free[node] = minus(self.free[node], asked)
        if not waiting.label:
            self._take(queue, waiting.user, asked)
        self.seats[number] = (node, asked)
        self.starts[number] = now
        self.unstarted -= 1
        heapq.heappush(self.ends, (now + self.lasts[number], len(self.stage.running) + number))
        return before
