"""What is asked for, and when: drawn with a seed, the same for every way of placing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

STEPS = {"conv": 450, "dense": 900, "read": 225}
"""Of a task of usual length, which takes a worker about as long with each program."""
CPU, CARD = "cpu", "card"
PROGRAMS = ("conv", "dense")
LENGTHS = (0.5, 1.5)
"""The shortest and the longest task, in usual lengths."""
TASKS = 40
SLICES = {0.3: 8, 0.55: 4, 0.8: 4}
"""How often the tasks of each load are cut, so that all ways of one slice take about 40 minutes."""


@dataclass(frozen=True)
class Wish:
    """One task: what it is to do, and when it is asked for.

    `at` counts from the first, in the time that all nodes together take for one task of usual length.
    """

    number: int
    at: float
    program: str
    length: float
    seed: int

    @property
    def steps(self) -> int:
        """How many steps it trains."""
        return round(STEPS[self.program] * self.length)

    @property
    def words(self) -> tuple[str, str, str]:
        """What train.py is told."""
        return self.program, str(self.steps), str(self.seed)


@dataclass(frozen=True)
class Slice:
    """Some consecutive tasks of one load."""

    load: float
    wishes: tuple[Wish, ...]


def bound_by(program: str) -> str:
    """What a program takes all of that it can get: its node's CPUs, or its network card."""
    return CARD if program == "read" else CPU


def draw_slices(seed: int, programs: Sequence[str] = PROGRAMS) -> list[Slice]:
    """All tasks of all loads; those of load 0.5 ask for half of what the nodes can do, and come as a Poisson stream.

    >>> [(one.load, len(one.wishes)) for one in draw_slices(1)][6:]
    [(0.3, 5), (0.3, 5), (0.55, 10), (0.55, 10), (0.55, 10), (0.55, 10), (0.8, 10), (0.8, 10), (0.8, 10), (0.8, 10)]
    """
    return [
        Slice(load, tuple(draw_tasks(f"{seed}/{number}", load, TASKS // count, number * (TASKS // count), programs)))
        for load, count in SLICES.items()
        for number in range(count)
    ]


def draw_tasks(
    seed: int | str, load: float, count: int = TASKS, first: int = 0, programs: Sequence[str] = PROGRAMS
) -> list[Wish]:
    """So many tasks that come one after another, numbered from `first`."""
    dice = random.Random(f"{seed}/{load}")  # noqa: S311 - an experiment that can be repeated
    at, found = 0.0, []
    for number in range(first, first + count):
        found.append(Wish(number, at, dice.choice(programs), dice.uniform(*LENGTHS), dice.randrange(1_000_000)))
        at += dice.expovariate(load)
    return found
