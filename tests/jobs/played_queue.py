"""A cluster of uneven nodes that is played second by second, for what an estimate says of it to be compared with.

It knows nothing of `jobs.queueing.replay`: each second every node tells of itself, in any order, and is offered to the
queues as YARN does it. Tasks come alone and in arrays, and run as long as their program has it: most of them shortly,
some for very long.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

from hadoop.rest.scheduler import Size
from jobs.queueing.run_times import Experience, Lasted, RunTimes
from jobs.queueing.scene import Hold, Node, Queue, Running, Scene, Waiting

NODES = {"a": 2048, "b": 4096, "c": 4096, "d": 8192, "e": 16384}
PROGRAMS = {"evaluate": (30.0, 0.6), "train": (240.0, 1.2), "sweep": (90.0, 1.0), "convert": (600.0, 1.2)}
"""Median of the seconds and the spread of their logarithm."""
SIZES = (512, 1024, 1024, 2048, 4096)
TAIL = 0.03
"""So many of the runs last for ten times as long."""


@dataclass
class Task:
    number: int
    queue: str
    program: str
    mb: int
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
    """`shares` are the queues with their parts, `masters` the part of a queue that masters may have."""

    seed: int
    load: float
    masters: float = 1.0
    shares: dict[str, float] = field(default_factory=lambda: {"default": 1.0})

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.now = 0.0
        self.free = dict(NODES)
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
            self.free[task.node] += task.mb
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

        nodes = [Node(name, total, 8, self.free[name], 8) for name, total in NODES.items()]
        total = sum(NODES.values())
        queues = [
            Queue(name, part * total, total, most, most)
            for name, part in self.shares.items()
            if (most := Size(int(part * total * self.masters), 1))
        ]
        running = [
            Running(
                queue=one.queue,
                user="user",
                holds=[Hold(one.node, one.mb, 1)],
                master=Size(one.mb, 1),
                elapsed=self.now - (one.started_at or 0.0),
                runs=runs(one),
            )
            for one in self.running
        ]
        line = sorted(self.waiting, key=lambda one: (not one.active, one.number))
        waiting = [
            Waiting(str(one.number), one.queue, "user", one.mb, 1, runs(one), is_active=one.active) for one in line
        ]
        return Scene(nodes, queues, running, waiting, counts_vcores=False)

    def _submit(self) -> None:
        while self.next_at <= self.now:
            count = self.dice.choice([1, 1, 1, 4, 12])
            program, queue = self.dice.choice(list(PROGRAMS)), self.dice.choice(list(self.shares))
            size = self.dice.choice(SIZES)
            for _ in range(count):
                median, spread = PROGRAMS[program]
                seconds = self.dice.lognormvariate(0.0, spread) * median
                seconds *= 10.0 if self.dice.random() < TAIL else 1.0
                task = Task(len(self.tasks), queue, program, size, max(1.0, seconds), self.now)
                self.tasks.append(task)
                self.waiting.append(task)
            self.next_at += self.dice.expovariate(self.load / self._seconds_of_all())

    def _seconds_of_all(self) -> float:
        """Seconds for which what comes at once on average fills the whole cluster."""
        means = [median * 2.718281828 ** (spread**2 / 2) * (1 + 9 * TAIL) for median, spread in PROGRAMS.values()]
        work = 3.8 * (sum(means) / len(means)) * (sum(SIZES) / len(SIZES))
        return float(work / sum(NODES.values()))

    def _activate(self) -> None:
        used: dict[str, int] = defaultdict(int)
        for one in self.running:
            used[one.queue] += one.mb
        for one in self.waiting:
            used[one.queue] += one.mb if one.active else 0
        for one in self.waiting:
            most = self.shares[one.queue] * sum(NODES.values()) * self.masters
            if not one.active and (not used[one.queue] or used[one.queue] + one.mb <= most):
                one.active = True
                used[one.queue] += one.mb

    def _heartbeat(self, node: str) -> None:
        while task := self._next(node):
            for place in [place for place, owner in self.reserved.items() if owner is task]:
                del self.reserved[place]
            self.waiting.remove(task)
            self.running.append(task)
            self.free[node] -= task.mb
            task.started_at, task.node = self.now, node

    def _next(self, node: str) -> Task | None:
        if owner := self.reserved.get(node):
            return owner if self.free[node] >= owner.mb else None
        used = {name: sum(one.mb for one in self.running if one.queue == name) for name in self.shares}
        for queue in sorted(self.shares, key=lambda name: used[name] / self.shares[name]):
            for task in self.waiting:
                if task.queue != queue or not task.active or task.mb > NODES[node]:
                    continue
                if task.mb <= self.free[node]:
                    return task
                if task not in self.reserved.values():
                    self.reserved[node] = task
                    return None
        return None
