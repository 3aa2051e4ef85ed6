"""A block reaches a rack, and the whole cluster, at what the best of its holders usually costs there."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from statistics import median

import numpy as np
import pytest

from locality.access import ASSUMED_SECONDS_PER_BYTE
from locality.cost import AccessCost
from locality.local_reads import Holdings
from locality.rack_ways import RackWays
from locality.types import Block
from tests.locality.instances import access_cost

NODES = ["n0", "n1", "n2", "n3", "n4"]
"""In three racks, by turns; "gone" takes no work and lies in a rack without one that does."""
BLOCKS = [
    Block("in two racks", 2, 200, ("n0", "n1")),
    Block("twice in one rack", 1, 300, ("n0", "n3")),
    Block("nowhere", 1, 50, ()),
    Block("where nobody works", 1, 70, ("gone",)),
    Block("there and here", 1, 80, ("gone", "n4", "n4")),
]


@pytest.mark.parametrize("seed", range(20))
def test_the_best_holder_counts_for_each_rack_and_for_the_whole_cluster(seed: int) -> None:
    cost = access_cost(Random(seed), dict.fromkeys([*NODES, "gone"], 1.0))
    cost = AccessCost(cost.disks, cost.pairs, {**cost.racks, "gone": "/elsewhere"})
    ways = RackWays.of(Holdings.of(BLOCKS, NODES), cost)

    found = dict(zip(zip(ways.block.tolist(), ways.hub.tolist(), strict=True), ways.hub_seconds.tolist(), strict=True))
    expected = {
        (at, hub): seconds * block.size_bytes / block.items
        for at, block in enumerate(BLOCKS)
        for hub, seconds in seconds_by_hub(block, cost).items()
    }
    assert found == pytest.approx(expected)
    assert len(found) == len(ways.block)
    assert np.all(np.diff(ways.block) >= 0)


def seconds_by_hub(block: Block, cost: AccessCost) -> dict[int, float]:
    """Of the racks 0 to 2, and 3, which is the whole cluster."""
    beyond = (
        usual(holder, (node for node in NODES if cost.rack(node) != cost.rack(holder)), cost)
        for holder in block.replicas
    )
    found = {3: min(beyond, default=ASSUMED_SECONDS_PER_BYTE)}
    for hub in range(3):
        mine = [node for node in NODES if cost.rack(node) == f"/rack{hub}"]
        inside = [usual(holder, mine, cost) for holder in block.replicas if holder in mine]
        if inside:
            found[hub] = min(inside)
    return found


def usual(holder: str, readers: Iterable[str], cost: AccessCost) -> float:
    """The median of what all others pay for a byte, or what the holder pays itself where there are none."""
    others = [node for node in readers if node != holder] or [holder]
    return median(cost.seconds_per_byte(node, holder) for node in others)
