"""From numbers of items to a plan: what is read locally, what is poured into the room that is left."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, repeat

import numpy as np

from locality.flow import Ints
from locality.local_reads import Holdings, most_local
from locality.types import Block, Part, Plan


@dataclass(frozen=True)
class Shares:
    """Row k gives `items[k]` items of block number `block[k]` to node number `node[k]`."""

    block: Ints
    node: Ints
    items: Ints

    def __add__(self, others: Shares) -> Shares:
        return Shares(
            np.concatenate((self.block, others.block)),
            np.concatenate((self.node, others.node)),
            np.concatenate((self.items, others.items)),
        )


def pour(left: Ints, spare: Ints) -> Shares:
    """Give `left[b]` items of each block to nodes with room for `spare[n]` more, both in their order.

    There must be room for all; blocks are split where a node is full.
    """
    filled, full = np.cumsum(left), np.cumsum(spare)
    total = int(left.sum())
    cuts = np.sort(np.concatenate((filled, full[full < total])))
    items = np.diff(cuts, prepend=0)
    cuts, items = cuts[items > 0], items[items > 0]
    return Shares(np.searchsorted(filled, cuts), np.searchsorted(full, cuts), items)


def fill(holdings: Holdings, local: Ints, targets: Ints) -> Shares:
    """The local items of each pair, and every other item on a node that is below its target."""
    here = local > 0
    mine = Shares(holdings.block[here], holdings.node[here], local[here])
    loads = np.bincount(mine.node, mine.items, len(targets)).astype(np.int64)
    return mine + pour(holdings.items - holdings.of_each_block(local), np.maximum(targets - loads, 0))


def plan_exactly(blocks: Sequence[Block], targets: Mapping[str, int], nodes: Iterable[str]) -> Plan:
    """Give each node just its target, with the fewest bytes moved that this takes; the targets add up to all items.

    The plan names `nodes`, those without a target included.
    """
    holdings = Holdings.of(blocks, targets)
    wanted = holdings.of_each_node(targets)
    return plan_of(holdings, fill(holdings, most_local(holdings, wanted).local_items, wanted), list(nodes))


def plan_of(holdings: Holdings, shares: Shares, nodes: list[str]) -> Plan:
    """The plan of `nodes`; a block's items go out in the order of the rows, and a node reads in that order too."""
    block, node, items, first = _firsts(_merge(shares))
    order = np.argsort(node, kind="stable")
    ends = np.cumsum(np.bincount(node, minlength=len(holdings.nodes)))
    with _no_collections():
        blocks = map(holdings.blocks.__getitem__, block[order].tolist())
        # What Part() does, in a third of its time.
        fields = zip(blocks, first[order].tolist(), items[order].tolist(), strict=True)
        rows = list(map(tuple.__new__, repeat(Part), fields))
        cuts = pairwise([0, *ends.tolist()])
        given = {name: tuple(rows[start:end]) for name, (start, end) in zip(holdings.nodes, cuts, strict=True)}
    return Plan({name: given.get(name, ()) for name in sorted(nodes)})


def _merge(shares: Shares) -> Shares:
    """One row for each block and node; the rows keep the order of the first of each."""
    key = shares.block * (int(shares.node.max(initial=0)) + 1) + shares.node
    if np.diff(np.sort(key)).all():
        return shares
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    items = np.bincount(group, shares.items).astype(np.int64)
    order = np.argsort(first)
    kept = first[order]
    return Shares(shares.block[kept], shares.node[kept], items[order])


def _firsts(shares: Shares) -> tuple[Ints, Ints, Ints, Ints]:
    """Rows by block, and the number of the first item of each within its block."""
    order = np.argsort(shares.block, kind="stable")
    block, items = shares.block[order], shares.items[order]
    before = np.cumsum(items) - items
    starts = np.searchsorted(block, block)
    return block, shares.node[order], items, before - before[starts]


@contextmanager
def _no_collections() -> Iterator[None]:
    """A plan may be a million tuples without a cycle, and the collector would walk all of them again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
