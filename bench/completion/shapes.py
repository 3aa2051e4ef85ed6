"""The shapes of lab on which tasks are placed: how many CPUs and which network cards its workers have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.completion.draw import CARD, PROGRAMS, bound_by
from bench.paper import levels

USUAL_CPUS, USUAL_MBIT = 0.4, 1000
"""Of a worker on which a task of usual length takes about as long with each program."""
READ_CPUS = 0.25
"""What reading at USUAL_MBIT takes, as measured beside a card that tc held to it."""
DAEMON_CPUS = 0.05
"""What a worker's own daemons take, about."""


@dataclass(frozen=True)
class Shape:
    """What each worker has, in their order: CPUs, the share of them that other people's work leaves, and Mbit/s.

    Without cards, they stay as they are. `programs` are those of the tasks.
    """

    name: str
    programs: tuple[str, ...]
    cpus: tuple[float, ...]
    shares: tuple[float, ...]
    cards: tuple[int, ...] = ()

    @property
    def is_busy(self) -> bool:
        """Whether other people's work runs there."""
        return min(self.shares) < 1

    def speed(self, node: int, program: str) -> float:
        """What a program does on a node that it has for itself; on a usual and idle one it does 1."""
        if bound_by(program) == CARD:
            return self.cards[node] / USUAL_MBIT
        return self.shares[node] * self.cpus[node] / USUAL_CPUS

    def idle(self, node: int, reads: bool) -> float:
        """The share of a node's CPUs that is free while nothing runs there that is bound by them."""
        reading = READ_CPUS * self.cards[node] / USUAL_MBIT if reads else 0.0
        return max(0.0, self.shares[node] - (DAEMON_CPUS + reading) / self.cpus[node])


BUSY = Shape("busy", PROGRAMS, (USUAL_CPUS,) * 4, levels.SHARES)
UNEVEN = Shape("uneven", ("dense", "read"), (0.25, 0.4, 0.4, 0.7), (1.0,) * 4, (1000, 1000, 1000, 100))
"""The worker with the most CPU has the slow card, so that no order of the workers suits both programs."""
SHAPES: Mapping[str, Shape] = {one.name: one for one in (BUSY, UNEVEN)}
