"""Nodes and runs as they really are, for the simulator: speeds that change, losses, and what a step costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from locality.training.sample_order import SampleOrder

NEVER = math.inf


@dataclass(frozen=True)
class PlayedNode:
    """A node, computing `samples_per_second` beside the `fixed_seconds` of each step.

    `changes` are (second, factor): from then on it computes so many times as fast as at first. `up_at` its process is
    up, `lost_at` the node is lost. `noise` is sigma of the logarithm of the time of a step.
    """

    samples_per_second: float
    fixed_seconds: float = 0.0
    changes: tuple[tuple[float, float], ...] = ()
    up_at: float = 0.0
    lost_at: float = NEVER
    noise: float = 0.0

    def speed(self, now: float) -> float:
        """Samples per second now."""
        factors = [factor for second, factor in self.changes if second <= now]
        return self.samples_per_second * (factors[-1] if factors else 1.0)

    def seconds(self, samples: int, now: float, draw: Random) -> float:
        """Of the computing of a step that begins now; the speed may change amid it."""
        if not samples:
            return 0.0
        at, left = now + self.fixed_seconds, float(samples)
        for second in sorted(second for second, _ in self.changes if second > at):
            if (done := (second - at) * self.speed(at)) >= left:
                break
            at, left = second, left - done
        return (at + left / self.speed(at) - now) * draw.lognormvariate(0, self.noise)

    def is_alive(self, now: float) -> bool:
        """Whether its process runs."""
        return self.up_at <= now < self.lost_at


@dataclass(frozen=True)
class PlayedRun:
    """A run on `nodes`: `epochs` of the samples of `order`.

    `comm_seconds` is what each step takes beside computing; `regroup_seconds`, what members take to form a group.
    `thought` are the speeds that are known before the first step; where there are none, all nodes are thought equal.
    """

    nodes: Mapping[str, PlayedNode]
    order: SampleOrder
    epochs: int = 1
    comm_seconds: float = 0.0
    regroup_seconds: float = 0.2
    thought: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0

    @property
    def steps(self) -> int:
        """Of the whole run."""
        return self.epochs * self.order.steps

    def bound_seconds(self, members: tuple[str, ...], samples: int, now: float) -> float:
        """What no shares can beat in a step of `members`: b / sum(v_i), and the fixed cost of a step.

        Over an epoch of steady nodes that adds up to N / sum(v_i) + K * fixed cost.
        """
        fixed = min(self.nodes[member].fixed_seconds for member in members)
        return samples / math.fsum(self.nodes[member].speed(now) for member in members) + fixed + self.comm_seconds
