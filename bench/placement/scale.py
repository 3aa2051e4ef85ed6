"""How much is invented, and how often."""

from __future__ import annotations

from dataclasses import dataclass

PARTS = ("makespan", "bytes", "time")


@dataclass(frozen=True)
class Scale:
    """One size of the bench.

    trials      of each simulated row
    seeds       of each kind of instance whose bytes are counted, of `nodes` nodes and `blocks` blocks
    sizes       nodes x blocks that are planned on the clock, and `hard` those of them with skewed placement too
    rounds      how often each is planned, all methods in turns
    """

    trials: int = 30
    seeds: int = 30
    nodes: int = 50
    blocks: int = 5_000
    sizes: tuple[tuple[int, int], ...] = ((4, 400), (1_000, 100_000), (10_000, 1_000_000))
    hard: tuple[tuple[int, int], ...] = ((1_000, 100_000),)
    rounds: int = 3


FULL = Scale()
QUICK = Scale(trials=2, seeds=2, nodes=8, blocks=80, sizes=((4, 400),), hard=((4, 400),), rounds=1)
