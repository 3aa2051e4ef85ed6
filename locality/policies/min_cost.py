"""Spend as little time on reading as possible without ending later than the bound allows: the cheapest flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from locality.access import access_seconds, matrix
from locality.balance import check_blocks, check_capability
from locality.bounds import rooms
from locality.cost import AccessCost
from locality.flow import Arcs, Floats, Ints, cheapest, dearest
from locality.local_reads import Holdings
from locality.parts import Shares, plan_of, pour
from locality.policies import maxflow
from locality.rack_ways import RackWays
from locality.types import NO_TERMS, Block, Plan, Terms

EVERY_WAY = 200_000
"""Up to so many pairs of a block and a node, each is weighed; beyond, only ways over replicas and racks."""
RATHER_LOCAL = 1.0001
"""What a foreign read is weighed with, so that of equally dear ways the local one is taken."""
USUAL_COST = 10**4
"""What a way of median cost is to the solver at least, whose costs are whole numbers; those that are dearer than it can
count then (a billion times the median in small clusters, tens of thousands in large ones) are equally dear."""


def plan(blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms = NO_TERMS) -> Plan:
    """Divide `blocks` with the least access cost of all plans that end within 1 + `terms.epsilon` of the bound.

    Minimise sum(w_b c_bn x_bn) over the items x_bn of block b that node n reads, w_b bytes each, c_bn the seconds
    per byte from that replica of b which is cheapest for n, with sum_n(x_bn) = items of b and
    sum_b(x_bn) <= room_n = (1 + epsilon) * C_n / sum(C) of all items, and less for a node that begins later: see
    `rooms`. That is a min-cost flow, exact up to EVERY_WAY. Beyond, what is usual in a rack and between racks stands
    for single ways (RackWays), and maxflow's plan is taken where it costs less. PlanError names an unusable block,
    capability or epsilon.
    """
    check_blocks(blocks)
    check_capability(capability)
    room = rooms(sum(block.items for block in blocks), capability, terms.epsilon, terms.starts)
    holdings = Holdings.of(blocks, (node for node, most in room.items() if most))
    most = holdings.of_each_node(room)
    if len(holdings.items) * len(holdings.nodes) <= EVERY_WAY:
        return plan_of(holdings, _every_way(holdings, most, terms.cost), list(capability))
    by_rack = plan_of(holdings, _by_rack(holdings, most, terms.cost), list(capability))
    by_bytes = maxflow.plan(blocks, capability, terms)
    return min(by_rack, by_bytes, key=lambda plan: access_seconds(plan, terms.cost))


def _every_way(holdings: Holdings, room: Ints, cost: AccessCost) -> Shares:
    """Each block -> each node."""
    seconds = matrix(cost, holdings) * RATHER_LOCAL
    seconds[holdings.block, holdings.node] /= RATHER_LOCAL
    blocks, nodes = seconds.shape
    block, node = np.divmod(np.arange(blocks * nodes), nodes)
    ways = Arcs(block, blocks + node, holdings.items[block])
    flow = _cheapest(holdings, ways, seconds.ravel(), room, blocks + nodes)
    used = flow > 0
    return Shares(block[used], node[used], flow[used])


def _by_rack(holdings: Holdings, room: Ints, cost: AccessCost) -> Shares:
    """Each block -> its replicas, its racks and the whole cluster -> nodes."""
    ways = RackWays.of(holdings, cost)
    blocks, nodes = len(holdings.items), len(holdings.nodes)
    first_hub, here = blocks + nodes, len(holdings.block)
    direct = Arcs(holdings.block, blocks + holdings.node, holdings.items[holdings.block])
    to_hub = Arcs(ways.block, first_hub + ways.hub, holdings.items[ways.block])
    from_hub = Arcs(first_hub + ways.served_hub, blocks + ways.served, room[ways.served])
    arcs = direct + to_hub + from_hub
    seconds = np.concatenate((ways.local_seconds, ways.hub_seconds * RATHER_LOCAL, ways.served_seconds))
    flow = _cheapest(holdings, arcs, seconds, room, first_hub + ways.hubs)
    local, entering, leaving = np.split(flow, [here, here + len(to_hub)])
    shares = Shares(holdings.block[local > 0], holdings.node[local > 0], local[local > 0])
    for hub in np.unique(ways.hub[entering > 0]):
        into, out = (ways.hub == hub) & (entering > 0), ways.served_hub == hub
        poured = pour(entering[into], leaving[out])
        shares += Shares(ways.block[into][poured.block], ways.served[out][poured.node], poured.items)
    return shares


def _cheapest(holdings: Holdings, ways: Arcs, seconds: Floats, room: Ints, sink: int) -> Ints:
    """What the `ways` carry of all items; their vertices are blocks, nodes and whatever comes before `sink`."""
    blocks = len(holdings.items)
    ends = Arcs(np.arange(blocks, blocks + len(room)), np.full(len(room), sink), room)
    supplies = np.zeros(sink + 1, np.int64)
    supplies[:blocks], supplies[sink] = holdings.items, -holdings.items.sum()
    most = dearest(sink + 1)
    scale = max(most / seconds.max(), USUAL_COST / np.median(seconds[seconds > 0])) if seconds.any() else 0.0
    whole = np.minimum(np.rint(seconds * scale), most).astype(np.int64)
    return cheapest(ways + ends, np.concatenate((whole, np.zeros_like(room))), supplies)[: len(ways)]
