"""What each rule would come to on a model of the lab's workers."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from bench.completion.draw import Wish, draw_tasks
from bench.completion.model import ROOM
from bench.completion.ways import LEARNED, PRESSURE, RANDOM, STOCK
from jobs.submitter.moving import PAUSE_SECONDS, RATIO, RESTART_SECONDS, least_seconds

SHARES = (1.0, 0.75, 0.5, 0.35)
"""What each worker can do beside its background load."""
LOADS = (0.3, 0.55, 0.8)
MOVED = "learned, moved"
"""Programs of the lab's tasks end before they move, so this is simulated alone."""
START_SECONDS = 5.0
"""Of a task on an idle worker, before its program begins."""
LEAST = 1e-9

Rule = Callable[["Nodes", random.Random], int]


@dataclass
class Nodes:
    """The tasks on each node, by number, and the seconds of an idle worker that each still needs.

    `ran` are the seconds for which each has run where it is, `moves` says how often each has moved.
    """

    tasks: list[dict[int, float]] = field(default_factory=lambda: [{} for _ in SHARES])
    ran: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    moves: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def with_room(self) -> list[int]:
        """The nodes that take one more."""
        return [node for node, there in enumerate(self.tasks) if len(there) < ROOM]

    def speed(self, node: int, count: int) -> float:
        """That of each of so many tasks there, an idle worker's being 1."""
        return SHARES[node] / max(1, count)

    def pass_time(self, seconds: float) -> None:
        """Let all tasks run for so long."""
        for node, there in enumerate(self.tasks):
            done = seconds * self.speed(node, len(there))
            for number in there:
                there[number] -= done
                self.ran[number] += seconds

    def is_due(self, number: int) -> bool:
        """Whether a task has run for long enough to move."""
        return self.ran[number] >= least_seconds(self.moves[number]) - LEAST

    def faster(self, node: int) -> list[int]:
        """The nodes that are RATIO times as fast: none on which a task runs, as its score tells of the busy CPU."""
        return [other for other, there in enumerate(self.tasks) if not there and SHARES[other] >= RATIO * SHARES[node]]

    def next_end(self) -> tuple[float, int, int]:
        """In how many seconds the next task ends, its node and its number; infinite without one."""
        ends = [
            (left / self.speed(node, len(there)), node, number)
            for node, there in enumerate(self.tasks)
            for number, left in there.items()
        ]
        return min(ends, default=(float("inf"), 0, 0))


def _stock(nodes: Nodes, dice: random.Random) -> int:
    return min(nodes.with_room(), key=lambda node: (len(nodes.tasks[node]), dice.random()))


def _random(nodes: Nodes, dice: random.Random) -> int:
    return dice.choice(nodes.with_room())


def _pressure(nodes: Nodes, dice: random.Random) -> int:
    """A node that runs a task has no idle processor left, so only those without one differ."""
    idle = {node: 0.0 if nodes.tasks[node] else SHARES[node] for node in nodes.with_room()}
    return max(idle, key=lambda node: (idle[node], dice.random()))


def _learned(nodes: Nodes, _dice: random.Random) -> int:
    return max(nodes.with_room(), key=lambda node: nodes.speed(node, len(nodes.tasks[node]) + 1))


RULES: Mapping[str, Rule] = {
    STOCK: _stock,
    RANDOM: _random,
    PRESSURE: _pressure,
    LEARNED: _learned,
    MOVED: _learned,
}


def simulate(wishes: Sequence[Wish], usual: float, rule: str, seed: int) -> list[float]:
    """Seconds from asking for each task to its end, by one rule.

    `usual` are the seconds of a usual program on an idle worker. Tasks on one node share it evenly; what has no room
    waits, the first first.
    """
    dice, nodes, now = random.Random(seed), Nodes(), 0.0  # noqa: S311 - an experiment that can be repeated
    look = PAUSE_SECONDS if rule == MOVED else float("inf")
    unit = (START_SECONDS + usual) / sum(SHARES)
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
            nodes.tasks[RULES[rule](nodes, dice)][wish.number] = START_SECONDS + usual * wish.length
        if now >= look - LEAST:
            look += PAUSE_SECONDS
            _move(nodes)
    return [ended[wish.number] - wish.at * unit for wish in wishes]


def _move(nodes: Nodes) -> None:
    """Start the task elsewhere that gains most by it, as nodewise does: what it still needs is not known."""
    gains = [
        (SHARES[other] / SHARES[node], number, node, other)
        for node, there in enumerate(nodes.tasks)
        for number in there
        if nodes.is_due(number)
        for other in nodes.faster(node)
    ]
    if gains:
        _, number, node, other = max(gains)
        nodes.tasks[other][number] = nodes.tasks[node].pop(number) + RESTART_SECONDS
        nodes.ran[number] = 0.0
        nodes.moves[number] += 1


def compare(usual: float, seeds: int) -> dict[float, dict[str, float]]:
    """The mean of each rule as a share of stock's, by load, over the tasks of so many seeds."""
    found = {}
    for load in LOADS:
        drawn = [(draw_tasks(seed, load), seed) for seed in range(seeds)]
        means = {rule: fmean(fmean(simulate(one, usual, rule, seed)) for one, seed in drawn) for rule in RULES}
        found[load] = {rule: mean / means[STOCK] for rule, mean in means.items() if rule != STOCK}
    return found


def markdown(usual: float, seeds: int) -> str:
    """The same as a table."""
    lines = [
        f"Simulated: tasks whose programs take {usual:g} s on an idle worker, and {START_SECONDS:g} s to begin; mean "
        f"completion as a share of stock's, over {seeds} draws.",
        "",
        f"| load | {' | '.join(rule for rule in RULES if rule != STOCK)} |",
        f"| --- |{' --- |' * (len(RULES) - 1)}",
    ]
    for load, ratios in compare(usual, seeds).items():
        lines.append(f"| {load} | {' | '.join(f'{ratio:.2f}' for ratio in ratios.values())} |")
    return "\n".join([*lines, ""])
