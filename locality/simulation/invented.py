"""Invented clusters, the same for the same seed: how wrong the plan's numbers are, and what goes wrong on the way."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from locality.simulation.simulate import Cluster, Machine
from locality.types import Block

ITEM_BYTES = 100_000
REPLICAS = 3
SLOWER = 4.0


class Fault(Enum):
    """What happens to one node, drawn by chance, when half of the work is done."""

    NONE = "none"
    SLOWER = "one node becomes four times slower"
    LOST = "one node is lost"


@dataclass(frozen=True)
class Shape:
    """What is invented.

    sigma            of the logarithm of true speed / planned capability: 0.3 is wrong by a third, often
    spread           of the logarithm of the capabilities
    noise            of the logarithm of the work of an item
    request_seconds  that each lease costs a node
    """

    nodes: int = 4
    items: int = 400
    sigma: float = 0.0
    fault: Fault = Fault.NONE
    spread: float = 0.5
    noise: float = 0.1
    request_seconds: float = 0.0


@dataclass(frozen=True)
class Trial:
    """What a planner is told, and the cluster as it really is."""

    blocks: Sequence[Block]
    capability: Mapping[str, float]
    cluster: Cluster


def invent(seed: int, shape: Shape) -> Trial:
    """Nodes of about ten items per second, one item a block, three replicas on nodes drawn by chance."""
    draw = random.Random(seed)  # noqa: S311 nothing secret
    names = [f"node{number:05}" for number in range(shape.nodes)]
    capability = {name: 10 * draw.lognormvariate(0, shape.spread) for name in names}
    machines = {name: Machine(value * draw.lognormvariate(0, shape.sigma)) for name, value in capability.items()}
    copies = min(REPLICAS, len(names))
    blocks = [Block(f"b{number}", 1, ITEM_BYTES, tuple(draw.sample(names, copies))) for number in range(shape.items)]
    half = Cluster(machines).bound(blocks) / 2
    work = {block.name: draw.lognormvariate(0, shape.noise) for block in blocks}
    machines |= _harm(draw.choice(names), machines, shape.fault, half)
    return Trial(blocks, capability, Cluster(machines, work, None, shape.request_seconds, silence_seconds=half / 2))


def _harm(node: str, machines: Mapping[str, Machine], fault: Fault, time: float) -> dict[str, Machine]:
    if fault is Fault.SLOWER:
        return {node: replace(machines[node], slower_at=time, slower_by=SLOWER)}
    return {node: replace(machines[node], lost_at=time)} if fault is Fault.LOST else {}
