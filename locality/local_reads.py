"""As many bytes as possible read where they lie: the flow source -> block -> its replicas -> node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from operator import attrgetter

import numpy as np

from locality.flow import Arcs, Flags, Floats, Ints, cheapest, largest
from locality.types import Block

EXACT_PAIRS = 60_000
"""Up to so many pairs of a crowded block and a replica the cheapest flow is worked out: half a second."""
_ROUNDS = 12
_PORTIONS = 4


@dataclass(frozen=True)
class Holdings:
    """The blocks that have items, as arrays: `items` and `item_bytes` (of one item) of each.

    Pair k says that block number `block[k]` has a replica on node number `node[k]` of `nodes`.
    """

    blocks: Sequence[Block]
    nodes: Sequence[str]
    items: Ints
    item_bytes: Floats
    block: Ints
    node: Ints

    @classmethod
    def of(cls, blocks: Iterable[Block], nodes: Iterable[str]) -> Holdings:
        """Replicas on other nodes than `nodes` are left out."""
        filled = [block for block in blocks if block.items]
        names = sorted(nodes)
        number = {node: at for at, node in enumerate(names)}
        replicas = list(map(attrgetter("replicas"), filled))
        items = np.fromiter(map(attrgetter("items"), filled), np.int64, len(filled))
        sizes = np.fromiter(map(attrgetter("size_bytes"), filled), np.float64, len(filled))
        counts = np.fromiter(map(len, replicas), np.int64, len(filled))
        node = np.fromiter(map(number.get, chain.from_iterable(replicas), repeat(-1)), np.int64, counts.sum())
        known = node >= 0
        block = np.repeat(np.arange(len(filled)), counts)[known]
        return cls(filled, names, items, sizes / items, block, node[known])

    def of_each_node(self, local_items: Mapping[str, int]) -> Ints:
        """Items per node, from items by name."""
        return np.array([local_items[node] for node in self.nodes], np.int64)

    def of_each_block(self, local_items: Ints) -> Ints:
        """Items per block, from items per pair."""
        return np.bincount(self.block, local_items, len(self.items)).astype(np.int64)


@dataclass(frozen=True)
class LocalReads:
    """Items that each pair reads locally, and bytes that every division has to move."""

    local_items: Ints
    fewest_bytes_moved: float


def most_local(holdings: Holdings, room: Ints) -> LocalReads:
    """Let nodes read as many bytes as possible where they lie, node n at most `room[n]` items.

    The sets of items that can be local at once form a matroid (transversals; Edmonds and Fulkerson 1965), so the
    division with most bytes local is also one with most items local: a maximum flow, in which only the items
    that find no room may be exchanged for lighter ones, within the crowded blocks. Where these are few the cheapest
    flow settles it; where they are many, see `_lightest_left`.
    """
    local_items = _largest_flow(holdings, holdings.items, room)
    left = holdings.items - holdings.of_each_block(local_items)
    moved = float(left @ holdings.item_bytes)
    crowded = _find_crowded(holdings, local_items, left)
    if not moved or np.ptp(holdings.item_bytes[crowded]) == 0:
        return LocalReads(local_items, moved)
    if np.count_nonzero(crowded[holdings.block]) > EXACT_PAIRS:
        return _lightest_left(holdings, room, crowded, left)
    local_items = _cheapest_flow(holdings, room)
    left = holdings.items - holdings.of_each_block(local_items)
    return LocalReads(local_items, float(left @ holdings.item_bytes))


def _lightest_left(holdings: Holdings, room: Ints, crowded: Flags, left: Ints) -> LocalReads:
    """Leave the lightest items of the crowded blocks, as the greedy algorithm on the dual matroid does, in rounds.

    When D items of the crowded blocks find no room, take their D lightest away and look whether all others find
    room; if D' do not, do the same with those. Then, in the reverse order and in portions, the heaviest first, what
    was taken away may come back as far as there is room. No division can move less than the D' lightest of the inner
    crowd, and of the outer one as many more as D is larger: that is what is proven. What is reached was seen to be up
    to 1 % above the best.
    """
    rest = holdings.items
    removed: list[Ints] = []
    crowds: list[tuple[Flags, int]] = []
    while left.any() and len(removed) < _ROUNDS:
        removed.append(_lightest(holdings, crowded, left, rest))
        crowds.append((crowded, int(left.sum())))
        rest = rest - removed[-1]
        local_items = _largest_flow(holdings, rest, room)
        left = rest - holdings.of_each_block(local_items)
        crowded = _find_crowded(holdings, local_items, left)
    for portion in chain.from_iterable(_heaviest_first(holdings, some) for some in reversed(removed)):
        rest = rest + portion
        local_items = _with_more(holdings, local_items, rest, room)
    return LocalReads(local_items, _proven(holdings, crowds))


def _heaviest_first(holdings: Holdings, local_items: Ints) -> Iterator[Ints]:
    """`local_items` of each block in portions, that of the heaviest ones first."""
    order = np.argsort(-holdings.item_bytes, kind="stable")
    until = np.cumsum(local_items[order])
    for edges in pairwise(np.linspace(0, until[-1], _PORTIONS + 1).astype(np.int64)):
        portion = np.zeros_like(local_items)
        portion[order] = np.clip(until, *edges) - np.clip(until - local_items[order], *edges)
        yield portion


def _proven(holdings: Holdings, crowds: Sequence[tuple[Flags, int]]) -> float:
    """Bytes of the lightest items of which the crowds, while each lies within the one before, leave so many."""
    nested = [crowds[0]]
    for crowded, count in crowds[1:]:
        if (crowded & ~nested[-1][0]).any():
            break
        nested.append((crowded, count))
    moved = np.zeros_like(holdings.items)
    for crowded, count in reversed(nested):
        missing = count - int(moved[crowded].sum())
        if missing > 0:
            moved = moved + _cut(holdings, np.flatnonzero(crowded), holdings.items - moved, missing)
    return float(moved @ holdings.item_bytes)


def _pairs(holdings: Holdings, items: Ints) -> Arcs:
    return Arcs(holdings.block, len(holdings.items) + holdings.node, items[holdings.block])


def _to_sink(holdings: Holdings, room: Ints, sink: int) -> Arcs:
    blocks = len(holdings.items)
    return Arcs(np.arange(blocks, blocks + len(room)), np.full(len(room), sink), room)


def _largest_flow(holdings: Holdings, items: Ints, room: Ints) -> Ints:
    """Items per pair, at most `items` of each block."""
    return _with_more(holdings, np.zeros(len(holdings.block), np.int64), items, room)


def _with_more(holdings: Holdings, local_items: Ints, items: Ints, room: Ints) -> Ints:
    """The largest flow that keeps local as many items of each block as `local_items` does, perhaps on other nodes."""
    blocks, nodes = len(items), len(room)
    source, sink = blocks + nodes, blocks + nodes + 1
    used = np.flatnonzero(local_items)
    forth = _pairs(holdings, items)
    back = Arcs(blocks + holdings.node[used], holdings.block[used], local_items[used])
    more = Arcs(np.full(blocks, source), np.arange(blocks), items - holdings.of_each_block(local_items))
    spare = room - np.bincount(holdings.node, local_items, nodes).astype(np.int64)
    flow = largest(forth + back + more + _to_sink(holdings, spare, sink), source, sink)
    found = local_items + flow[: len(forth)]
    found[used] -= flow[len(forth) : len(forth) + len(used)]
    return found


def _cheapest_flow(holdings: Holdings, room: Ints) -> Ints:
    """Items per pair, where one that is in none costs the rank of its bytes, which is what counts in a matroid."""
    blocks, items = len(holdings.items), holdings.items
    sink = blocks + len(room)
    arcs = _pairs(holdings, items) + _to_sink(holdings, room, sink)
    free = np.zeros(len(arcs), np.int64)
    arcs += Arcs(np.arange(blocks), np.full(blocks, sink), items)
    supplies = np.zeros(sink + 1, np.int64)
    supplies[:blocks], supplies[sink] = items, -items.sum()
    ranks = np.unique(np.append(holdings.item_bytes, 0), return_inverse=True)[1][:-1]  # 0 bytes cost nothing
    return cheapest(arcs, np.concatenate((free, ranks)), supplies)[: len(holdings.block)]


def _find_crowded(holdings: Holdings, local_items: Ints, left: Ints) -> Flags:
    """Blocks whose items could give way to one that found no room: residual paths lead there from those left."""
    reached = left > 0
    while True:
        nodes = np.zeros(len(holdings.nodes), bool)
        nodes[holdings.node[reached[holdings.block]]] = True
        further = reached.copy()
        further[holdings.block[nodes[holdings.node] & (local_items > 0)]] = True
        if np.array_equal(further, reached):
            return reached
        reached = further


def _lightest(holdings: Holdings, crowded: Flags, left: Ints, items: Ints) -> Ints:
    """As many items as are left, per block: the lightest of `items` in the crowd, of equal ones those left now."""
    blocks = np.flatnonzero(crowded)
    twice = np.concatenate((blocks, blocks))
    local_items = np.concatenate((left[blocks], (items - left)[blocks]))
    settled = np.repeat((0, 1), len(blocks))
    return _take_lightest(holdings, twice, local_items, settled, int(left.sum()))


def _cut(holdings: Holdings, blocks: Ints, items: Ints, count: int) -> Ints:
    return _take_lightest(holdings, blocks, items[blocks], np.zeros(len(blocks), np.int64), count)


def _take_lightest(holdings: Holdings, block: Ints, local_items: Ints, rank: Ints, count: int) -> Ints:
    """Per block, the `count` lightest items of rows (block, items), of equal ones those of lower rank."""
    order = np.lexsort((rank, holdings.item_bytes[block]))
    before = np.cumsum(local_items[order]) - local_items[order]
    taken = np.clip(count - before, 0, local_items[order])
    return np.bincount(block[order], taken, len(holdings.items)).astype(np.int64)
