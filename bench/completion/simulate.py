"""What each rule would come to on a model of the lab's workers, in each of its shapes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from bench.completion.draw import CARD, CPU, Wish, bound_by, draw_tasks
from bench.completion.model import ROOM
from bench.completion.shapes import BUSY, Shape
from bench.completion.ways import LEARNED, PRESSURE, RANDOM, STOCK
from jobs.submitter.moving import PAUSE_SECONDS, RATIO, RESTART_SECONDS, least_seconds

LOADS = (0.3, 0.55, 0.8)
MOVED = "learned, moved"
"""Programs of the lab's tasks end before they move, so this is simulated alone."""
SEEN = "learned, free CPU"
"""LEARNED as a node's values let it be: they tell of busy CPUs, and not of a card that others use."""
START_SECONDS = 5.0
"""Of a task on an idle worker, before its program begins."""
LEAST = 1e-9

Rule = Callable[["Nodes", str, random.Random], int]


@dataclass
class Nodes:
    """The tasks on each node, by number, and the seconds that each still needs if it has its node for itself.

    `programs` are those of the tasks. `ran` are the seconds for which each has run where it is, `moves` says how often
    each has moved.
    """

    shape: Shape
    tasks: list[dict[int, float]] = field(default_factory=list)
    programs: dict[int, str] = field(default_factory=dict)
    ran: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    moves: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        """Nothing runs yet."""
        self.tasks = self.tasks or [{} for _ in self.shape.cpus]

    def with_room(self) -> list[int]:
        """The nodes that take one more."""
        return [node for node, there in enumerate(self.tasks) if len(there) < ROOM]

    def count(self, node: int, takes: str) -> int:
        """The tasks of a node that are bound by its CPUs, or by its card."""
        return sum(bound_by(self.programs[number]) == takes for number in self.tasks[node])

    def free(self, node: int) -> float:
        """The free share of a node's CPUs, of which a task that is bound by them leaves nothing."""
        return 0.0 if self.count(node, CPU) else self.shape.idle(node, reads=bool(self.count(node, CARD)))

    def begin(self, node: int, wish: Wish, usual: float) -> None:
        """Start a task; beginning takes CPU, whatever its program is bound by."""
        self.programs[wish.number] = wish.program
        within = usual * wish.length / self.shape.speed(node, wish.program)
        self.tasks[node][wish.number] = self.begins(node, START_SECONDS) + within

    def begins(self, node: int, seconds: float) -> float:
        """What takes a usual and idle node so long, before a program begins, takes this one so long."""
        return seconds / self.shape.speed(node, "dense")

    def sharing(self, node: int, number: int) -> int:
        """The tasks that share with one what it is bound by, itself among them."""
        return self.count(node, bound_by(self.programs[number]))

    def pass_time(self, seconds: float) -> None:
        """Let all tasks run for so long."""
        for node, there in enumerate(self.tasks):
            for number in there:
                there[number] -= seconds / self.sharing(node, number)
                self.ran[number] += seconds

    def is_due(self, number: int) -> bool:
        """Whether a task has run for long enough to move."""
        return self.ran[number] >= least_seconds(self.moves[number]) - LEAST

    def gain(self, number: int, node: int, other: int) -> float:
        """How many times as fast a task's program is on another node, if both have nothing else to do."""
        program = self.programs[number]
        return self.shape.speed(other, program) / self.shape.speed(node, program)

    def faster(self, number: int, node: int) -> list[int]:
        """The nodes that are RATIO times as fast: none on which a task runs, as its score tells of the busy CPU."""
        there = enumerate(self.tasks)
        return [other for other, tasks in there if not tasks and self.gain(number, node, other) >= RATIO]

    def next_end(self) -> tuple[float, int, int]:
        """In how many seconds the next task ends, its node and its number; infinite without one."""
        ends = [
            (left * self.sharing(node, number), node, number)
            for node, there in enumerate(self.tasks)
            for number, left in there.items()
        ]
        return min(ends, default=(float("inf"), 0, 0))


def _stock(nodes: Nodes, _program: str, dice: random.Random) -> int:
    return min(nodes.with_room(), key=lambda node: (len(nodes.tasks[node]), dice.random()))


def _random(nodes: Nodes, _program: str, dice: random.Random) -> int:
    return dice.choice(nodes.with_room())


def _pressure(nodes: Nodes, _program: str, dice: random.Random) -> int:
    return max(nodes.with_room(), key=lambda node: (nodes.free(node), dice.random()))


def _learned(nodes: Nodes, program: str, _dice: random.Random) -> int:
    """Where the program is fastest beside what runs there already."""
    takes = bound_by(program)
    return max(nodes.with_room(), key=lambda node: nodes.shape.speed(node, program) / (nodes.count(node, takes) + 1))


def _seen(nodes: Nodes, program: str, dice: random.Random) -> int:
    """The rule as its lines have it: the speed when learned, times how much of a quarter of the CPU is free now."""
    scores = {node: nodes.shape.speed(node, program) * min(1.0, nodes.free(node) / 0.25) for node in nodes.with_room()}
    return max(scores, key=lambda node: (scores[node], dice.random()))


RULES: Mapping[str, Rule] = {
    STOCK: _stock,
    RANDOM: _random,
    PRESSURE: _pressure,
    LEARNED: _learned,
    SEEN: _seen,
    MOVED: _learned,
}


def simulate(wishes: Sequence[Wish], usual: float, rule: str, seed: int, shape: Shape = BUSY) -> list[float]:
    """Seconds from asking for each task to its end, by one rule.

    `usual` are the seconds of a usual program on a usual and idle worker. Tasks of one node that are bound by the same
    share it evenly, the others do not hear of one another; what has no room waits, the first first.
    """
    dice, nodes, now = random.Random(seed), Nodes(shape), 0.0  # noqa: S311 - an experiment that can be repeated
    look = PAUSE_SECONDS if rule == MOVED else float("inf")
    unit = _unit(shape, usual)
    coming, waiting, ended = list(wishes), list[Wish](), dict[int, float]()
    while coming or waiting or any(nodes.tasks):
        in_seconds, node, number = nodes.next_end()
        arrives = coming[0].at * unit if coming else float("inf")
        step = min(in_seconds, arrives - now, look - now)
        nodes.pass_time(step)
        now += step
        if now >= arrives - LEAST and coming:
            waiting.append(coming.pop(0))
        elif step == in_seconds:
            del nodes.tasks[node][number]
            ended[number] = now
        while waiting and nodes.with_room():
            wish = waiting.pop(0)
            nodes.begin(RULES[rule](nodes, wish.program, dice), wish, usual)
        if now >= look - LEAST:
            look += PAUSE_SECONDS
            _move(nodes)
    return [ended[wish.number] - wish.at * unit for wish in wishes]


def _unit(shape: Shape, usual: float) -> float:
    """The seconds that all nodes together take for one task of usual length, in the mean of the programs."""

    def alone(node: int, program: str) -> float:
        return START_SECONDS / shape.speed(node, "dense") + usual / shape.speed(node, program)

    nodes = range(len(shape.cpus))
    return 1 / sum(1 / fmean(alone(node, program) for program in shape.programs) for node in nodes)


def _move(nodes: Nodes) -> None:
    """Start the task elsewhere that gains most by it, as nodewise does: what it still needs is not known."""
    gains = [
        (nodes.gain(number, node, other), number, node, other)
        for node, there in enumerate(nodes.tasks)
        for number in there
        if nodes.is_due(number)
        for other in nodes.faster(number, node)
    ]
    if gains:
        gain, number, node, other = max(gains)
        nodes.tasks[other][number] = nodes.tasks[node].pop(number) / gain + nodes.begins(other, RESTART_SECONDS)
        nodes.ran[number] = 0.0
        nodes.moves[number] += 1


def compare(usual: float, seeds: int, shape: Shape = BUSY) -> dict[float, dict[str, float]]:
    """The mean of each rule as a share of stock's, by load, over the tasks of so many seeds."""
    found = {}
    for load in LOADS:
        drawn = [(draw_tasks(seed, load, programs=shape.programs), seed) for seed in range(seeds)]
        means = {rule: fmean(fmean(simulate(one, usual, rule, seed, shape)) for one, seed in drawn) for rule in RULES}
        found[load] = {rule: mean / means[STOCK] for rule, mean in means.items() if rule != STOCK}
    return found


def markdown(usual: float, seeds: int, shape: Shape = BUSY) -> str:
    """The same as a table."""
    lines = [
        f"Simulated on {shape.name} workers: tasks whose programs take {usual:g} s on an idle worker, and "
        f"{START_SECONDS:g} s to begin; mean completion as a share of stock's, over {seeds} draws.",
        "",
        f"| load | {' | '.join(rule for rule in RULES if rule != STOCK)} |",
        f"| --- |{' --- |' * (len(RULES) - 1)}",
    ]
    for load, ratios in compare(usual, seeds, shape).items():
        lines.append(f"| {load} | {' | '.join(f'{ratio:.2f}' for ratio in ratios.values())} |")
    return "\n".join([*lines, ""])
