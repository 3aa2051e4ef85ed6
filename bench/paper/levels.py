"""How busy each worker is with other people's work: drawn with a seed, set by stress-ng, and measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

SHARES = (1.0, 0.75, 0.5, 0.35)
"""Of what it can do when it is idle, each worker can do about this much beside its background load."""
SPREAD = 0.05
NEAR = 0.1
LOOKS = 4
MOST_PERCENT = 200

Speeds = Mapping[str, float]


@dataclass(frozen=True)
class Scene:
    """What was set and what came of it: `percent` of a CPU that stress-ng tries to take, speeds in images/s.

    `idle` is what each worker does alone without load, `loaded` with it, both with all workers at work at once.
    """

    seed: int
    wanted: dict[str, float]
    percent: dict[str, int]
    idle: dict[str, float]
    loaded: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """As the journal keeps it."""
        return asdict(self)


def draw_shares(seed: int, nodes: Sequence[str]) -> dict[str, float]:
    """The share that each node is to keep: the same seed, the same shares."""
    dice = random.Random(seed)  # noqa: S311 - an experiment that can be repeated, nothing secret
    shares = [share if share == 1 else share * dice.uniform(1 - SPREAD, 1 + SPREAD) for share in SHARES]
    dice.shuffle(shares)
    return dict(zip(nodes, shares, strict=True))


def first_percent(share: float, cpus: float) -> int:
    """The load that leaves a share of `cpus` CPUs if it always gets what it wants."""
    return 0 if share >= 1 else max(1, round(100 * cpus * (1 - share)))


def correct(percent: int, kept: float, wanted: float) -> int:
    """A load nearer to the one that leaves `wanted`, after `percent` has left `kept`.

    What it takes is held to grow evenly with the load, at most threefold in one step.
    """
    if wanted >= 1:
        return 0
    factor = (1 - wanted) / max(1 - kept, (1 - wanted) / 3)
    return min(MOST_PERCENT, max(1, round(percent * factor)))


def near(kept: Mapping[str, float], wanted: Mapping[str, float]) -> bool:
    """Whether every node that is to be busy keeps about what it should."""
    return all(abs(kept[node] / share - 1) <= NEAR for node, share in wanted.items() if share < 1)


def calibrate(
    seed: int, nodes: Sequence[str], cpus: float, load: Callable[[str, int], None], speeds: Callable[[], Speeds]
) -> Scene:
    """Set loads, look at what the nodes still do, and mend the loads until it is about what was drawn.

    A quota that a container shares with its load does not simply divide by what stress-ng asks for, so this is
    measured. After the last look the loads stay as they are, near or not: the record tells.
    """
    for node in nodes:
        load(node, 0)
    idle, wanted = dict(speeds()), draw_shares(seed, nodes)
    percent = {node: first_percent(share, cpus) for node, share in wanted.items()}
    for look in range(LOOKS):
        for node in nodes:
            load(node, percent[node])
        loaded = dict(speeds())
        kept = {node: loaded[node] / idle[node] for node in nodes}
        if near(kept, wanted) or look == LOOKS - 1:
            break
        percent = {node: correct(percent[node], kept[node], wanted[node]) for node in nodes}
    return Scene(seed, wanted, percent, idle, loaded)


def guess_loads(seed: int, nodes: Sequence[str], cpus: float, load: Callable[[str, int], None]) -> Scene:
    """Loads by the formula alone, for a run that measures nothing."""
    wanted = draw_shares(seed, nodes)
    percent = {node: first_percent(share, cpus) for node, share in wanted.items()}
    for node in nodes:
        load(node, percent[node])
    return Scene(seed, wanted, percent, {}, {})
