"""What reading costs under a plan: every item from the replica that is cheapest for its reader."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

import numpy as np

from locality.cost import AccessCost
from locality.flow import Floats
from locality.local_reads import Holdings
from locality.types import Part, Plan

ASSUMED_SECONDS_PER_BYTE = 1e-6
"""A byte without a live replica, which somebody has to bring back first: dearer than networks usually are."""


def seconds_per_byte(cost: AccessCost, reader: str, holders: Collection[str]) -> float:
    """What a byte costs `reader` that lies on each of `holders`: its own disk if it is one of them, as HDFS reads."""
    if reader in holders:
        return cost.seconds_per_byte(reader, reader)
    return min((cost.seconds_per_byte(reader, holder) for holder in holders), default=ASSUMED_SECONDS_PER_BYTE)


def access_seconds(plan: Plan, cost: AccessCost) -> float:
    """Seconds that all nodes together spend on reading their parts."""
    return math.fsum(_reading(node, parts, cost) for node, parts in plan.parts.items())


def _reading(node: str, parts: Iterable[Part], cost: AccessCost) -> float:
    known: dict[tuple[str, ...], float] = {}
    own = cost.seconds_per_byte(node, node)
    seconds = 0.0
    for part in parts:
        replicas = part.block.replicas
        if node in replicas:
            seconds += part.size_bytes * own
        else:
            if replicas not in known:
                known[replicas] = seconds_per_byte(cost, node, replicas)
            seconds += part.size_bytes * known[replicas]
    return seconds


def matrix(cost: AccessCost, holdings: Holdings) -> Floats:
    """Seconds per item, blocks x nodes, as `seconds_per_byte` has it."""
    holders = sorted({name for block in holdings.blocks for name in block.replicas})
    number = {name: at for at, name in enumerate(holders)}
    ways = np.full((len(holders) + 1, len(holdings.nodes)), ASSUMED_SECONDS_PER_BYTE)
    for at, holder in enumerate(holders):
        ways[at] = [cost.seconds_per_byte(reader, holder) for reader in holdings.nodes]
    per_byte = np.empty((len(holdings.blocks), len(holdings.nodes)))
    for at, block in enumerate(holdings.blocks):
        per_byte[at] = ways[[number[name] for name in block.replicas] or [-1]].min(axis=0)
    own = np.array([cost.seconds_per_byte(node, node) for node in holdings.nodes])
    per_byte[holdings.block, holdings.node] = own[holdings.node]
    return per_byte * holdings.item_bytes[:, None]
