"""Random instances: where blocks lie, how large they are and what nodes can do; the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from locality.cost import AccessCost, Rate
from locality.types import Block, Terms

IMAGE_BYTES = 100_000
NODES_A_RACK = 20
DISK = Rate(400e6, age=0.0)
"""Of every node; what other nodes hold is read at the rates that are assumed where none was measured."""


@dataclass(frozen=True)
class Kind:
    """What is drawn: capabilities and bytes per picture are lognormal with these sigmas.

    `crowded` is the share of blocks of which a tenth of the nodes hold the first replica.
    """

    text: str
    capability_sigma: float
    size_sigma: float
    crowded: float


KINDS = {
    "uniform": Kind("blocks spread evenly, equal pictures", 0.5, 0.0, 0.0),
    "skewed": Kind("half of the blocks written on a tenth of the nodes, unequal pictures", 1.0, 1.0, 0.5),
}


@dataclass(frozen=True)
class Instance:
    """What a policy is given: one picture a block, in three replicas as HDFS places them."""

    blocks: Sequence[Block]
    capability: dict[str, float]
    terms: Terms


def invent(kind: Kind, nodes: int, blocks: int, seed: int) -> Instance:
    """An instance of this size; names of nodes are about as long as real ones."""
    draw = random.Random(seed)  # noqa: S311 nothing secret
    size = min(NODES_A_RACK, max(2, nodes // 2))
    names = [f"node{number:05}.example.org" for number in range(nodes)]
    racks = [names[first : first + size] for first in range(0, nodes, size)]
    rack_of = {name: number for number, rack in enumerate(racks) for name in rack}
    busy = draw.sample(names, max(1, nodes // 10))
    made = []
    for number in range(blocks):
        writer = draw.choice(busy if draw.random() < kind.crowded else names)
        size_bytes = round(IMAGE_BYTES * draw.lognormvariate(0, kind.size_sigma))
        made.append(Block(f"/data/{number:07}.jpg", 1, size_bytes, _replicas(draw, writer, racks, rack_of[writer])))
    capability = {name: draw.lognormvariate(0, kind.capability_sigma) for name in names}
    cost = AccessCost(dict.fromkeys(names, DISK), racks={name: f"/rack{number}" for name, number in rack_of.items()})
    return Instance(made, capability, Terms(cost))


def _replicas(draw: random.Random, writer: str, racks: Sequence[Sequence[str]], home: int) -> tuple[str, ...]:
    """HDFS's default: one on the node that writes, two on different nodes of one other rack."""
    other = draw.randrange(len(racks) - 1)
    elsewhere = racks[other + (other >= home)]
    return (writer, *draw.sample(elsewhere, min(2, len(elsewhere))))
