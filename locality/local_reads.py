"""As many bytes as possible read where they lie: the flow source -> block -> its replicas -> node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import attrgetter

import numpy as np

from locality.flow import Arcs, Flags, Floats, Ints, largest
from locality.types import Block

_GREEDY_ROUNDS = 4
"""How often blocks that found no room ask the next best of their holders before the flow is worked out."""


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

    The sets of items that can be local at once form a matroid (transversals; Edmonds and Fulkerson 1965): who takes
    the heaviest item, then the next for which there is still room beside those taken, has the most bytes local. This
    finds as much with few flows, by dividing the cluster into parts (as Fujishige 1980 does for polymatroids). Of a
    part with D more items than room, the D lightest are left out. If all others find room, the part is settled. If
    not, the crowded nodes, which those others fill, become a part of their own with the blocks that lie only there:
    it must leave out more than those lightest. What remains of the part must leave out nothing else.
    """
    local_items = np.zeros(len(holdings.block), np.int64)
    lightest_first = np.argsort(holdings.item_bytes, kind="stable")
    parts = _Parts.whole(holdings)
    while len(parts.pair):
        items = parts.without_lightest(holdings, room, lightest_first)
        found = parts.most_items(local_items[parts.pair], items, room)
        local_items[parts.pair] = found
        parts = parts.split(holdings, items, found)
    left = holdings.items - holdings.of_each_block(local_items)
    return LocalReads(local_items, float(left @ holdings.item_bytes))


@dataclass(frozen=True)
class _Parts:
    """Parts of the cluster that are not settled yet, `count` in number.

    `pair` are the pairs of the holdings whose block and node, `block` and `node`, are in the same part. `of_block` and
    `of_node` are the part of each block and node, `count` for those that are in none.
    """

    pair: Ints
    block: Ints
    node: Ints
    of_block: Ints
    of_node: Ints
    count: int

    @classmethod
    def whole(cls, holdings: Holdings) -> _Parts:
        """All in one part, but the blocks that nobody holds."""
        of_block = np.ones(len(holdings.items), np.int64)
        of_block[holdings.block] = 0
        of_node = np.zeros(len(holdings.nodes), np.int64)
        return cls(np.arange(len(holdings.block)), holdings.block, holdings.node, of_block, of_node, 1)

    def without_lightest(self, holdings: Holdings, room: Ints, lightest_first: Ints) -> Ints:
        """Items of each block in the parts, without the lightest of each part that are too many for its nodes."""
        order = lightest_first[self.of_block[lightest_first] < self.count]
        order = order[_sorting(self.of_block[order])]
        part, items = self.of_block[order], holdings.items[order]
        all_items = _sums(part, items, self.count)
        too_many = np.maximum(all_items - _sums(self.of_node, room, self.count + 1)[:-1], 0)
        kept = np.zeros_like(holdings.items)
        kept[order] = items - _share_out(too_many, part, items)
        return kept

    def most_items(self, local_items: Ints, items: Ints, room: Ints) -> Ints:
        """Items per pair, as many as possible of `items` of each block; it starts from `local_items`."""
        found = _share_out(items, self.block, local_items)
        left, spare = items - _sums(self.block, found, len(items)), room - _sums(self.node, found, len(room))
        for _ in range(_GREEDY_ROUNDS):
            self._offer(found, left, spare)
        return found + self._more(found, items, left, spare) if left.any() and spare.any() else found

    def _offer(self, found: Ints, left: Ints, spare: Ints) -> None:
        """Give what is left of each block to that of its nodes for whose spare room the fewest ask; change all."""
        able = np.flatnonzero((left[self.block] > 0) & (spare[self.node] > 0))
        if not len(able):
            return
        block, node = self.block[able], self.node[able]
        ease = (spare / np.maximum(np.bincount(node, left[block], len(spare)), 1))[node]
        starts = np.flatnonzero(np.diff(block, prepend=-1))
        easiest = np.repeat(np.maximum.reduceat(ease, starts), np.diff(starts, append=len(block)))
        able = able[ease == easiest]
        able = able[np.diff(self.block[able], prepend=-1) > 0]
        able = able[_sorting(self.node[able])]
        block, node = self.block[able], self.node[able]
        taken = _share_out(spare, node, left[block])
        found[able] += taken
        left[block] -= taken
        spare -= _sums(node, taken, len(spare))

    def _more(self, found: Ints, items: Ints, left: Ints, spare: Ints) -> Ints:
        """What a largest flow adds to each pair where so much is `left` of the blocks, and `spare` at the nodes.

        It flows from the nodes to the blocks, which the solver does in half of the time.
        """
        forth, back = np.flatnonzero(found < items[self.block]), np.flatnonzero(found)
        source, sink = len(left) + len(spare), len(left) + len(spare) + 1
        flow = largest(self._spare_ways(found, items, left, spare), source, sink)
        added = np.zeros_like(found)
        added[forth] = flow[: len(forth)]
        added[back] -= flow[len(forth) : len(forth) + len(back)]
        return added

    def _spare_ways(self, found: Ints, items: Ints, left: Ints, spare: Ints) -> Arcs:
        """From nodes to blocks where a block could have more on a node, back where it has some; source, sink."""
        blocks, nodes = np.flatnonzero(left), np.flatnonzero(spare)
        source, sink = len(left) + len(spare), len(left) + len(spare) + 1
        room = items[self.block] - found
        forth, back = np.flatnonzero(room), np.flatnonzero(found)
        node = len(left) + self.node
        tail = (node[forth], self.block[back], np.full(len(nodes), source), blocks)
        head = (self.block[forth], node[back], len(left) + nodes, np.full(len(blocks), sink))
        capacity = (room[forth], found[back], spare[nodes], left[blocks])
        return Arcs(*map(np.concatenate, (tail, head, capacity)))

    def _find_crowded(self, found: Ints, left: Flags) -> Flags:
        """Nodes whose items could give way to those of the blocks that are `left`: residual paths lead there."""
        block, node = self.block[found > 0], self.node[found > 0]
        nodes, blocks, fresh = np.zeros(len(self.of_node), bool), left, left
        while fresh.any():
            nodes[self.node[fresh[self.block]]] = True
            further = blocks.copy()
            further[block[nodes[node]]] = True
            blocks, fresh = further, further & ~blocks
        return nodes

    def split(self, holdings: Holdings, items: Ints, found: Ints) -> _Parts:
        """The parts that are still not settled when nodes read `found` of `items` of each block."""
        left = items > _sums(self.block, found, len(items))
        crowded = self._find_crowded(found, left)
        inside = self.of_block < self.count
        inside[self.block[~crowded[self.node]]] = False
        of_block, of_node = 2 * self.of_block + inside, 2 * self.of_node + crowded
        is_open = np.zeros(2 * self.count + 2, bool)
        # What remains of a part may take back what was left out; a crowd of equal items is settled.
        is_open[2 * self.of_block[left]] = True
        is_open[::2] &= _sums(of_block, holdings.items - items, len(is_open))[::2] > 0
        is_open[1::2] = _has_different(of_block[inside], holdings.item_bytes[inside], len(is_open))[1::2]
        kept = np.flatnonzero(is_open[of_block[self.block]] & (of_block[self.block] == of_node[self.node]))
        numbers = np.flatnonzero(np.bincount(of_node[self.node[kept]], minlength=len(is_open)))
        renamed = np.full(len(is_open), len(numbers))
        renamed[numbers] = np.arange(len(numbers))
        return _Parts(
            self.pair[kept], self.block[kept], self.node[kept], renamed[of_block], renamed[of_node], len(numbers)
        )


def _sums(group: Ints, items: Ints, groups: int) -> Ints:
    """Sums of whole numbers; np.bincount rounds what is beyond 2**53, and then the rounds might never end."""
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, group, items)
    return sums


def _share_out(most: Ints, group: Ints, items: Ints) -> Ints:
    """Of `items`, which are sorted by group, the first in each group that add up to at most `most[group]`."""
    sums = _sums(group, items, len(most))
    before = np.cumsum(items) - items - (np.cumsum(sums) - sums)[group]
    shared: Ints = np.clip(most[group] - before, 0, items)
    return shared


def _sorting(numbers: Ints) -> Ints:
    """The order in which `numbers` are sorted and equal ones stay as they are; quick, as numpy sorts small types."""
    return np.argsort(numbers.astype(np.min_scalar_type(int(numbers.max(initial=0)))), kind="stable")


def _has_different(group: Ints, values: Floats, groups: int) -> Flags:
    """Whether the values of a group are not all the same."""
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(least, group, values)
    np.maximum.at(most, group, values)
    return least < most
