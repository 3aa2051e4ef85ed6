"""What no shares can beat.

An epoch of steady nodes takes at least N / sum(v_i) + K * (T_comm + fixed cost): v_i are samples a second of each node
while all compute and none waits, N samples in K steps. The fixed cost is that of a step without samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Speeds:
    """Of each node in samples a second, and the seconds of a step without samples."""

    samples_per_second: tuple[float, ...]
    fixed_seconds: float

    def step_seconds(self, batch: int) -> float:
        """Of the shortest step.

        >>> Speeds((100.0, 300.0), 0.25).step_seconds(400)
        1.25
        """
        return batch / sum(self.samples_per_second) + self.fixed_seconds

    def shares(self, batch: int) -> list[int]:
        """In the ratio of the speeds.

        >>> Speeds((100.0, 300.0), 0.0).shares(10)
        [2, 8]
        """
        total = sum(self.samples_per_second)
        edges = [0.0]
        for speed in self.samples_per_second:
            edges.append(edges[-1] + batch * speed / total)
        return [round(after) - round(before) for before, after in pairwise(edges)]


def mean_speeds(measured: Sequence[Speeds]) -> Speeds:
    """Of several measurements, before and after."""
    count = len(measured)
    each = zip(*(one.samples_per_second for one in measured), strict=True)
    return Speeds(tuple(sum(one) / count for one in each), sum(one.fixed_seconds for one in measured) / count)


def epoch_seconds(speeds: Speeds, samples: int, batch: int) -> float:
    """The bound of an epoch."""
    steps = -(-samples // batch)
    return samples / sum(speeds.samples_per_second) + steps * speeds.fixed_seconds


def most_steps(phases: Sequence[tuple[float, Speeds]], batch: int) -> float:
    """Steps that fit into phases of so many seconds each, in which nodes are so fast.

    >>> most_steps([(10.0, Speeds((100.0,), 0.0)), (10.0, Speeds((50.0,), 0.0))], 100)
    15.0
    """
    return sum(seconds / speeds.step_seconds(batch) for seconds, speeds in phases)
