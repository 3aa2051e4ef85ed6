"""What the tasks of a slice would take if somebody knew each of them beforehand: a model of the nodes, and a search."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from bench.completion.draw import Wish, bound_by

Alone = Mapping[tuple[str, str], tuple[float, float]]
"""By node and program: the seconds around the program of a task and, at usual length, within, with nothing beside."""
ROOM = 2
"""Tasks that a worker of the lab has memory and cores for."""
STARTS = 20
LEAST = 1e-9
"""Seconds; less is nothing."""


@dataclass
class _Task:
    """What is left of one: seconds around its program, and then seconds in it, had it its node alone.

    `takes` is what the program is bound by.
    """

    number: int
    takes: str
    comes: float
    around: float
    within: float


def complete(wishes: Sequence[Wish], nodes: Sequence[str], alone: Alone, unit: float) -> list[float]:
    """The seconds from asking for each task to its end, when `nodes` says where each goes.

    A node takes ROOM tasks at once, the others wait for it. Programs that are bound by the same, its CPUs or its card,
    share that evenly; what is around a program takes its time whatever else runs. `unit` is how long `Wish.at` = 1 is,
    in seconds.
    """
    found = [0.0] * len(wishes)
    for node in set(nodes):
        tasks = []
        for number, wish in enumerate(wishes):
            if nodes[number] == node:
                around, within = alone[node, wish.program]
                tasks.append(_Task(number, bound_by(wish.program), wish.at * unit, around, within * wish.length))
        for task, ended in _run(tasks):
            found[task.number] = ended - task.comes
    return found


def _run(waiting: list[_Task]) -> Iterator[tuple[_Task, float]]:
    """When each task of one node ends; they come in this order."""
    now, there = 0.0, list[_Task]()
    while waiting or there:
        while waiting and len(there) < ROOM and waiting[0].comes <= now:
            there.append(waiting.pop(0))
        inside = [task for task in there if not task.around]
        sharing = Counter(task.takes for task in inside)
        steps = [task.around or task.within * sharing[task.takes] for task in there]
        if waiting and len(there) < ROOM:
            steps.append(waiting[0].comes - now)
        step = min(steps)
        now += step
        for task in there:
            if task.around:
                task.around = 0.0 if task.around - step < LEAST else task.around - step
            else:
                task.within -= step / sharing[task.takes]
        for task in [task for task in inside if task.within < LEAST]:
            there.remove(task)
            yield task, now


def find_best(wishes: Sequence[Wish], alone: Alone, unit: float) -> list[float]:
    """The same for the best places that a search finds; it begins at the fastest nodes, and at drawn places."""
    names = sorted({node for node, _ in alone})
    dice = random.Random(1)  # noqa: S311 - the same search each time
    starts = [[min(names, key=lambda name: sum(alone[name, wish.program])) for wish in wishes]]
    starts += [dice.choices(names, k=len(wishes)) for _ in range(STARTS)]
    return min((_climb(wishes, nodes, alone, unit) for nodes in starts), key=fmean)


def _climb(wishes: Sequence[Wish], nodes: list[str], alone: Alone, unit: float) -> list[float]:
    """Change one place at a time until no change makes the mean smaller."""
    best, improved = complete(wishes, nodes, alone, unit), True
    while improved:
        improved = False
        for number, name in product(range(len(wishes)), sorted({node for node, _ in alone})):
            other = [*nodes[:number], name, *nodes[number + 1 :]]
            found = complete(wishes, other, alone, unit)
            if fmean(found) < fmean(best) - LEAST:
                nodes, best, improved = other, found, True
    return best
