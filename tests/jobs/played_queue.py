"""A cluster of uneven nodes that is played second by second, for what an estimate says of it to be compared with.

It knows nothing of `jobs.queueing.replay`: each second every node tells of itself, in any order, and is offered to the
queues as YARN does it. Tasks come alone and in arrays, and run as long as their program has it: most of them shortly,
some for very long.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from hadoop.rest.amounts import MEMORY, VCORES, Amounts, add
from jobs.queueing.run_times import Experience, Lasted, RunTimes
from jobs.queueing.scene import Hold, Node, Queue, Running, Scene, Waiting

NODES = {"a": 2048, "b": 4096, "c": 4096, "d": 8192, "e": 16384}
PROGRAMS = {"evaluate": (30.0, 0.6), "train": (240.0, 1.2), "sweep": (90.0, 1.0), "convert": (600.0, 1.2)}
"""Median of the seconds and the spread of their logarithm."""
SIZES = (512, 1024, 1024, 2048, 4096)
GPU = "yarn.io/gpu"
PLENTY = 64
"""Cores of a node where nobody is short of them."""
TAIL = 0.03
"""So many of the runs last for ten times as long."""


@dataclass
class Task:
    number: int
    queue: str
    program: str
    asks: Amounts
    seconds: float
    asked_at: float
    started_at: float | None = None
    node: str = ""
    active: bool = False

    @property
    def ends_at(self) -> float:
        assert self.started_at is not None
        return self.started_at + self.seconds


@dataclass
class PlayedCluster:
    """`shares` are the queues with their parts, `masters` the part of a queue that masters may have.

    YARN goes by memory alone, unless nodes have only so many `cores` for each 2 GB, of which some tasks want two, or
    there are `gpus` by node: then every third task wants one.
    """

    seed: int
    load: float
    masters: float = 1.0
    shares: dict[str, float] = field(default_factory=lambda: {"default": 1.0})
    cores: int = 0
    gpus: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.now = 0.0
        self.counts_all = bool(self.cores or self.gpus)
        self.total: dict[str, Amounts] = {
            name: {
                MEMORY: mb,
                VCORES: self.cores * mb // 2048 if self.cores else PLENTY,
                GPU: self.gpus.get(name, 0),
            }
            for name, mb in NODES.items()
        }
        self.whole = add(self.total.values())
        self.free = {name: dict(amounts) for name, amounts in self.total.items()}
        self.reserved: dict[str, Task] = {}
        self.waiting: list[Task] = []
        self.running: list[Task] = []
        self.ended: list[Task] = []
        self.tasks: list[Task] = []
        self.next_at = 0.0

    def step(self) -> None:
        """One second."""
        self.now += 1.0
        self._submit()
        for task in [one for one in self.running if one.ends_at <= self.now]:
            self.running.remove(task)
            self.ended.append(task)
            self.free[task.node] = add([self.free[task.node], task.asks])
        self._activate()
        for node in self.dice.sample(list(NODES), len(NODES)):
            self._heartbeat(node)

    def scene(self) -> Scene:
        """What YARN would tell of this moment; the newest of what ended comes first."""
        lasted = [
            Lasted(self.now - (one.started_at or 0.0), one.queue, one.program, has_ended=False) for one in self.running
        ]
        lasted += [Lasted(one.seconds, one.queue, one.program) for one in reversed(self.ended)]
        known = Experience(lasted)

        def runs(task: Task) -> RunTimes:
            found = known.of(task.queue, task.program)
            assert found is not None
            return found

        nodes = [Node(name, total, self.free[name]) for name, total in self.total.items()]
        queues = []
        for name, part in self.shares.items():
            share = {kind: int(part * count) for kind, count in self.whole.items()}
            most = {kind: int(part * count * self.masters) for kind, count in self.whole.items()}
            queues.append(Queue(name, share, self.whole, most, most))
        running = [
            Running(
                queue=one.queue,
                user="user",
                holds=[Hold(one.node, one.asks)],
                master=one.asks,
                elapsed=self.now - (one.started_at or 0.0),
                runs=runs(one),
            )
            for one in self.running
        ]
        line = sorted(self.waiting, key=lambda one: (not one.active, one.number))
        waiting = [
            Waiting(str(one.number), one.queue, "user", one.asks, runs(one), is_active=one.active) for one in line
        ]
        return Scene(nodes, queues, running, waiting, self.counts_all)

    def _submit(self) -> None:
        while self.next_at <= self.now:
            count = self.dice.choice([1, 1, 1, 4, 12])
            program, queue = self.dice.choice(list(PROGRAMS)), self.dice.choice(list(self.shares))
            size = self.dice.choice(SIZES)
            for _ in range(count):
                median, spread = PROGRAMS[program]
                seconds = self.dice.lognormvariate(0.0, spread) * median
                seconds *= 10.0 if self.dice.random() < TAIL else 1.0
                task = Task(len(self.tasks), queue, program, self._asks(size), max(1.0, seconds), self.now)
                self.tasks.append(task)
                self.waiting.append(task)
            self.next_at += self.dice.expovariate(self.load / self._seconds_of_all())

    def _asks(self, mb: int) -> Amounts:
        cores = self.dice.choice((1, 1, 2)) if self.cores else 1
        gpus = int(self.dice.random() < 1 / 3) if self.gpus else 0
        return {MEMORY: mb, VCORES: cores, GPU: gpus}

    def _seconds_of_all(self) -> float:
        """Seconds for which what comes at once on average fills the whole cluster."""
        means = [median * 2.718281828 ** (spread**2 / 2) * (1 + 9 * TAIL) for median, spread in PROGRAMS.values()]
        work = 3.8 * (sum(means) / len(means)) * (sum(SIZES) / len(SIZES))
        return float(work / sum(NODES.values()))

    def _activate(self) -> None:
        masters: dict[str, Amounts] = defaultdict(dict)
        for one in [*self.running, *(one for one in self.waiting if one.active)]:
            masters[one.queue] = add([masters[one.queue], one.asks])
        for one in self.waiting:
            part = self.shares[one.queue] * self.masters
            most = {kind: part * count for kind, count in self.whole.items()}
            with_it = add([masters[one.queue], one.asks])
            if not one.active and (not masters[one.queue] or self._is_within(with_it, most)):
                one.active = True
                masters[one.queue] = with_it

    def _is_within(self, asks: Amounts, room: Mapping[str, float]) -> bool:
        kinds = (MEMORY, VCORES, GPU) if self.counts_all else (MEMORY,)
        return all(asks[kind] <= room[kind] for kind in kinds)

    def _heartbeat(self, node: str) -> None:
        while task := self._next(node):
            for place in [place for place, owner in self.reserved.items() if owner is task]:
                del self.reserved[place]
            self.waiting.remove(task)
            self.running.append(task)
            self.free[node] = {kind: count - task.asks[kind] for kind, count in self.free[node].items()}
            task.started_at, task.node = self.now, node

    def _next(self, node: str) -> Task | None:
        free = self.free[node]
        if owner := self.reserved.get(node):
            return owner if self._is_within(owner.asks, free) else None
        used = {name: sum(one.asks[MEMORY] for one in self.running if one.queue == name) for name in self.shares}
        for queue in sorted(self.shares, key=lambda name: used[name] / self.shares[name]):
            for task in self.waiting:
                if task.queue != queue or not task.active or not self._is_within(task.asks, self.total[node]):
                    continue
                if self._is_within(task.asks, free):
                    return task
                if task not in self.reserved.values():
                    self.reserved[node] = task
                    return None
        return None
