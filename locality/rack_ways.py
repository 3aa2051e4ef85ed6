"""The ways a block can be read in a large cluster: on its replicas, from within a rack, from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from operator import attrgetter
from statistics import median

import numpy as np

from locality.access import ASSUMED_SECONDS_PER_BYTE
from locality.cost import AccessCost
from locality.flow import Floats, Ints
from locality.local_reads import Holdings

_SAMPLE = 8
"""Readers of which the median is taken as what a holder's rack, or the others, usually pay."""


@dataclass(frozen=True)
class RackWays:
    """Hubs are the racks of the nodes and, last, the whole cluster; costs are seconds per item.

    Pair k of the holdings costs `local_seconds[k]`; block `block[k]` reaches hub `hub[k]` at `hub_seconds[k]`, which is
    what its holders usually cost there; from hub `served_hub[k]` node `served[k]` is reached at `served_seconds[k]`,
    what it usually pays more than others, for an item of mean size.
    """

    hubs: int
    local_seconds: Floats
    block: Ints
    hub: Ints
    hub_seconds: Floats
    served_hub: Ints
    served: Ints
    served_seconds: Floats

    @classmethod
    def of(cls, holdings: Holdings, cost: AccessCost) -> RackWays:
        """Weigh the replicas of each block, those on nodes that take no work included."""
        racks = sorted({cost.rack(node) for node in holdings.nodes})
        hub_of = {rack: at for at, rack in enumerate(racks)}
        place = np.array([hub_of[cost.rack(node)] for node in holdings.nodes], np.int64)
        own = np.array([cost.seconds_per_byte(node, node) for node in holdings.nodes])
        usual = _Usual(holdings, cost)
        block, hub, per_byte = _to_hubs(holdings, cost, usual, hub_of)
        everywhere = np.arange(len(holdings.nodes))
        return cls(
            hubs=len(racks) + 1,
            local_seconds=own[holdings.node] * holdings.item_bytes[holdings.block],
            block=block,
            hub=hub,
            hub_seconds=per_byte * holdings.item_bytes[block],
            served_hub=np.concatenate((place, np.full(len(holdings.nodes), len(racks)))),
            served=np.concatenate((everywhere, everywhere)),
            served_seconds=np.tile(_surcharges(holdings, cost), 2),
        )


def _to_hubs(
    holdings: Holdings, cost: AccessCost, usual: _Usual, hub_of: Mapping[str, int]
) -> tuple[Ints, Ints, Floats]:
    """Block number, hub number and seconds per byte of each way from a block to a hub."""
    replicas = list(map(attrgetter("replicas"), holdings.blocks))
    holders = sorted(set(chain.from_iterable(replicas)))
    number = {holder: at for at, holder in enumerate(holders)}
    copies = np.fromiter(map(len, replicas), np.int64, len(replicas))
    block = np.repeat(np.arange(len(replicas)), copies)
    holder = np.fromiter(map(number.__getitem__, chain.from_iterable(replicas)), np.int64, len(block))
    beyond = np.array([usual.beyond(name) for name in holders])
    within = np.array([usual.within(name) for name in holders])
    hub = np.array([hub_of.get(cost.rack(name), -1) for name in holders], np.int64)
    anywhere = np.where(copies > 0, np.inf, ASSUMED_SECONDS_PER_BYTE)
    np.minimum.at(anywhere, block, beyond[holder])
    near = hub[holder] >= 0
    ways, first, way = np.unique(
        block[near] * (len(hub_of) + 1) + hub[holder[near]], return_index=True, return_inverse=True
    )
    nearby = np.full(len(ways), np.inf)
    np.minimum.at(nearby, way, within[holder[near]])
    of_block, to_hub = np.divmod(ways, len(hub_of) + 1)
    of_block = np.concatenate((np.arange(len(replicas)), of_block))
    order = np.lexsort((np.concatenate((np.full(len(replicas), -1), first)), of_block))
    to_hub = np.concatenate((np.full(len(replicas), len(hub_of)), to_hub))
    return of_block[order], to_hub[order], np.concatenate((anywhere, nearby))[order]


def _surcharges(holdings: Holdings, cost: AccessCost) -> Floats:
    """Seconds that each node usually pays more for an item than the median node does; 0 for the quicker ones."""
    holders = holdings.nodes[:: max(1, len(holdings.nodes) // _SAMPLE)]
    paid = np.array([median(cost.seconds_per_byte(node, each) for each in holders) for node in holdings.nodes])
    item = holdings.item_bytes @ holdings.items / max(holdings.items.sum(), 1)
    surcharges: Floats = np.maximum(paid - np.median(paid), 0) * item
    return surcharges


class _Usual:
    """Seconds per byte that readers within a holder's rack, and in others, usually pay."""

    def __init__(self, holdings: Holdings, cost: AccessCost) -> None:
        self._cost = cost
        self._racks = {node: cost.rack(node) for node in holdings.nodes}
        self._by_rack: dict[str, list[str]] = {}
        for node, rack in self._racks.items():
            self._by_rack.setdefault(rack, []).append(node)
        self.within = cache(self._within)
        self.beyond = cache(self._beyond)

    def _within(self, holder: str) -> float:
        return self._median(holder, self._by_rack.get(self._cost.rack(holder), ()))

    def _beyond(self, holder: str) -> float:
        own = self._cost.rack(holder)
        return self._median(holder, (node for node, rack in self._racks.items() if rack != own))

    def _median(self, holder: str, readers: Iterable[str]) -> float:
        others = list(islice((reader for reader in readers if reader != holder), _SAMPLE)) or [holder]
        return median(self._cost.seconds_per_byte(reader, holder) for reader in others)
