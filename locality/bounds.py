"""What no plan can beat: the shortest makespan and the fewest bytes moved; and what a plan does move."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from locality.balance import (
    End,
    check_capability,
    earliest_end,
    floor_product,
    nearest_float,
    quickest_shares,
    seconds_until,
)
from locality.local_reads import Holdings, most_local
from locality.types import NO_STARTS, Block, Plan, PlanError


@dataclass(frozen=True)
class Moved:
    """What a plan lets nodes read from others: `items` items of together `size_bytes` bytes."""

    items: int
    size_bytes: int


def makespan_lower_bound(items: int, speeds: Mapping[str, float], starts: Mapping[str, float] = NO_STARTS) -> float:
    """Seconds after which `items` items are done at the earliest on nodes of `speeds` items per second.

    bound = T with sum(speed_i * max(0, T - start_i)) = items, so items / sum(speeds) if all begin at once: if items
    could be cut into fractions and moved for nothing, all nodes that have begun would end at the same moment, and then
    none could do more. PlanError unless every speed is finite and 0 or more, and one is above 0.
    """
    for node, speed in speeds.items():
        if not math.isfinite(speed) or speed < 0:
            raise PlanError(
                f"the speed of node {node} is {speed}: it must be a finite number of 0 or more, in items per second"
            )
    if not any(speeds.values()) and items:
        raise PlanError("no node has a speed above 0, so the work never ends", remedy="measure at least one node")
    return nearest_float(earliest_end(items, speeds, starts))


def moved_load(plan: Plan) -> Moved:
    """The items and bytes that `plan` gives to nodes that hold no replica of them."""
    parts = [part for node, mine in plan.parts.items() for part in mine if not part.is_local(node)]
    return Moved(sum(part.items for part in parts), round(math.fsum(part.size_bytes for part in parts)))


def rooms(
    items: int,
    capability: Mapping[str, float],
    epsilon: float,
    starts: Mapping[str, float] = NO_STARTS,
    shares: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """How many of `items` items each node may get if all are to end within 1 + `epsilon` of the lower bound.

    `shares` are those of `quickest_shares`, for whoever knows them.

    room_i = floor(C_i * max(0, T - s_i)) with T = max(T_0 + epsilon * (T_0 - s), T*), where T_0 is the earliest end, s
    when the first node begins, and T* the shortest makespan of whole items, so that there is room for all. If all begin
    at once, that is T = max((1 + epsilon) * items / sum(C), T*). PlanError unless epsilon is a finite number of 0 or
    more, and for an unusable capability.
    """
    check_capability(capability)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise PlanError(
            f"epsilon is {epsilon}", remedy="give a finite number of 0 or more, 0.02 for 2 % over the bound"
        )
    earliest = earliest_end(items, capability, starts)
    able = [node for node, value in capability.items() if value]
    late = Fraction(epsilon) * max(Fraction(0), earliest - Fraction(min(starts.get(node, 0) for node in able)))
    shares = quickest_shares(items, capability, starts) if shares is None else shares
    last = max(
        (End(node, one, capability[node], starts.get(node, 0)) for node, one in shares.items() if one), default=None
    )
    latest = max(earliest + late, last.seconds) if last else earliest + late
    seconds = seconds_until(latest, able, starts)
    most = {node: floor_product(capability[node], seconds[node]) for node in able}
    return {node: min(items, most.get(node, 0)) for node in capability}


def fewest_bytes_moved(blocks: Sequence[Block], room: Mapping[str, int]) -> int:
    """The fewest bytes that any plan giving each node at most `room` items must read from other nodes.

    A transportation problem: maximise sum(w_b x_bn) over the items x_bn of block b that node n reads from itself,
    w_b bytes each, with sum_n(x_bn) <= items of b and sum_b(x_bn) <= room[n]; what is not in the sum must move.
    PlanError when the room is less than the items, or below 0 anywhere.
    """
    items = sum(block.items for block in blocks)
    if sum(room.values()) < items or any(most < 0 for most in room.values()):
        raise PlanError(
            f"the room of the nodes adds up to {sum(room.values())} for {items} items: "
            "it must be 0 or more each, and enough for all"
        )
    holdings = Holdings.of(blocks, (node for node, most in room.items() if most))
    # Rounded down, so that no plan's rounded sum of fractions can fall below it.
    return math.floor(most_local(holdings, holdings.of_each_node(room)).fewest_bytes_moved + 1e-6)
