"""What HiGHS says: the fewest bytes to move and the fewest seconds to read, by linear programs, none of our code.

All are transportation problems: their matrices are totally unimodular and their right sides whole, so the best plan
in fractions of items is no better than the best in whole items (Hoffman and Kruskal 1956).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from locality.cost import AccessCost
from locality.types import NO_STARTS, Block, Plan

Arc = tuple[int, str, float]
"""Index of a block, a node that may read it, and what each item of it is worth or costs there."""


def fewest_bytes(blocks: Sequence[Block], room: Mapping[str, int]) -> float:
    """All bytes, less the most that can be read where they lie: maximise sum(w_b x_bn) over the replicas n of b."""
    arcs = [
        (index, node, -block.size_bytes / block.items)
        for index, block in enumerate(blocks)
        if block.items
        for node in set(block.replicas)
        if room.get(node, 0)
    ]
    local = -solve(blocks, room, arcs, all_placed=False)
    return sum(block.size_bytes for block in blocks if block.items) - local


def fewest_access_seconds(blocks: Sequence[Block], room: Mapping[str, int], cost: AccessCost) -> float:
    """Minimise sum(c_bn x_bn), c_bn the seconds in which n reads one item of b."""
    arcs = [
        (index, node, item_seconds(block, node, cost))
        for index, block in enumerate(blocks)
        if block.items
        for node in room
        if room[node]
    ]
    return solve(blocks, room, arcs, all_placed=True)


def solve(blocks: Sequence[Block], room: Mapping[str, int], arcs: Sequence[Arc], *, all_placed: bool) -> float:
    """Minimise sum(value x) subject to items of each block (all of them, or at most) and rooms of the nodes."""
    if not arcs:
        return 0.0
    row = {node: len(blocks) + i for i, node in enumerate(room)}
    of_block, of_node = ([index for index, _, _ in arcs], [row[node] for _, node, _ in arcs])
    columns = np.arange(len(arcs))
    shape = (len(blocks) + len(room), len(arcs))
    matrix = coo_array((np.ones(2 * len(arcs)), (of_block + of_node, np.tile(columns, 2))), shape=shape).tocsr()
    units, places = [block.items for block in blocks], list(room.values())
    value = np.array([value for _, _, value in arcs])
    scale = 1.0 if not all_placed else 1e4 / max(value.max(), 1e-300)
    if all_placed:
        limits = {"A_eq": matrix[: len(blocks)], "b_eq": units, "A_ub": matrix[len(blocks) :], "b_ub": places}
    else:
        limits = {"A_ub": matrix, "b_ub": [*units, *places]}
    solved = linprog(value * scale, **limits, method="highs")
    assert solved.status == 0, solved.message
    return float(solved.fun) / scale


def item_seconds(block: Block, reader: str, cost: AccessCost) -> float:
    """Seconds in which a node reads one item: from its own disk if it holds it, else from its nearest holder.

    An item that nobody holds costs every node the same, so its seconds decide nothing and count as 0.
    """
    holders = [reader] if reader in block.replicas else block.replicas
    nearest = min((cost.seconds_per_byte(reader, holder) for holder in holders), default=0.0)
    return block.size_bytes / block.items * nearest


def access_seconds(plan: Plan, cost: AccessCost) -> float:
    """What all nodes together spend on reading their parts under `plan`."""
    return math.fsum(
        part.items * item_seconds(part.block, node, cost) for node, parts in plan.parts.items() for part in parts
    )


def shortest_makespan(items: int, capability: Mapping[str, float], starts: Mapping[str, float] = NO_STARTS) -> Fraction:
    """The shortest in whole items: each next item to the node that ends first with it (exchange argument)."""
    speeds = {node: Fraction(value) for node, value in capability.items() if value > 0}
    ends = [(Fraction(starts.get(node, 0)) + 1 / speed, node) for node, speed in speeds.items()]
    heapq.heapify(ends)
    last = Fraction(0)
    for _ in range(items):
        last, node = ends[0]
        heapq.heapreplace(ends, (last + 1 / speeds[node], node))
    return last
