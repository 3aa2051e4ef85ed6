"""The steps that policies share: check, stored distribution, whole-number targets, levelled loads."""

from __future__ import annotations

import heapq
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from operator import attrgetter, itemgetter

from locality.types import NO_STARTS, Block, Part, Plan, PlanError


def check_blocks(blocks: Sequence[Block]) -> None:
    """Refuse, with PlanError, blocks that share a name or count items or bytes below zero."""
    if len(set(map(attrgetter("name"), blocks))) < len(blocks):
        ((twice, _),) = Counter(map(attrgetter("name"), blocks)).most_common(1)
        raise PlanError(f"block {twice!r} occurs twice", remedy="list every block once")
    least = min(map(attrgetter("items"), blocks), default=0), min(map(attrgetter("size_bytes"), blocks), default=0)
    if min(least) < 0:
        block = next(block for block in blocks if block.items < 0 or block.size_bytes < 0)
        raise PlanError(
            f"block {block.name!r} has {block.items} items in {block.size_bytes} bytes: both must be 0 or more"
        )


def check_capability(capability: Mapping[str, float]) -> None:
    """Refuse, with PlanError, no nodes, a capability that is not a finite number >= 0, and zeros only."""
    if not capability:
        raise PlanError("there is no node to give work to", remedy="name at least one with its capability")
    for node, value in capability.items():
        if not math.isfinite(value) or value < 0:
            raise PlanError(
                f"the capability of node {node} is {value}: it must be a finite number of 0 or more; "
                "mend what produces it, or leave the node out"
            )
    if not any(capability.values()):
        raise PlanError(
            "the capability of every node is 0, so no node may get work",
            remedy="wait until one has room, or choose another capability",
        )


def stored_distribution(blocks: Sequence[Block], nodes: Iterable[str]) -> dict[str, list[Part]]:
    """Give each block whole to the first of `nodes` that its replicas name: the paper's first partition.

    A block with no replica on any of `nodes` goes, after the others, to the node with the fewest items
    (the first by name among equals), because every node would have to fetch it. Empty blocks are in no part.
    """
    parts: dict[str, list[Part]] = {node: [] for node in sorted(nodes)}
    loads = dict.fromkeys(parts, 0)
    homeless = []
    for block in blocks:
        if not block.items:
            continue
        home = next((node for node in block.replicas if node in parts), None)
        if home is None:
            homeless.append(block)
            continue
        parts[home].append(Part(block, 0, block.items))
        loads[home] += block.items
    least = [(load, node) for node, load in loads.items()]
    heapq.heapify(least)
    for block in homeless:
        load, node = least[0]
        parts[node].append(Part(block, 0, block.items))
        heapq.heapreplace(least, (load + block.items, node))
    return parts


def earliest_end(items: int, capability: Mapping[str, float], starts: Mapping[str, float] = NO_STARTS) -> Fraction:
    """The moment at which `items` items can be done at the earliest, if they could be cut into fractions.

    The least T with sum(C_i * max(0, T - s_i)) = sum(L), where node i begins at s_i: sum(L) / sum(C) if all begin at 0.
    A capability must be above 0; PlanError names a start that is not a finite number of 0 or more.
    """
    for node, start in starts.items():
        if not math.isfinite(start) or start < 0:
            raise PlanError(f"node {node} begins at {start}: it must be a finite number of 0 or more")
    if not items:
        return Fraction(0)
    able = sorted((starts.get(node, 0), value) for node, value in capability.items() if value)
    speed = given_up = Fraction(0)
    for start, together in groupby(able, key=itemgetter(0)):
        begins = Fraction(start)
        if speed and items + given_up <= begins * speed:
            break
        faster = _sum_exactly([value for _, value in together])
        speed += faster
        given_up += faster * begins
    return (items + given_up) / speed


def fair_shares(
    items: int, capability: Mapping[str, float], starts: Mapping[str, float] = NO_STARTS
) -> dict[str, Fraction]:
    """What each node can do until the earliest end, in fractions of items that add up to `items`.

    L_i^o = C_i * max(0, T - s_i), with T as of `earliest_end`: C_i / sum(C) * sum(L) if all begin at once.
    """
    seconds = seconds_until(earliest_end(items, capability, starts), capability, starts)
    return {node: Fraction(value) * seconds[node] for node, value in capability.items()}


def seconds_until(end: Fraction, nodes: Iterable[str], starts: Mapping[str, float]) -> dict[str, Fraction]:
    """How long each node can work until `end`, 0 if it begins later."""
    begins = {node: starts.get(node, 0) for node in nodes}
    left = {start: max(Fraction(0), end - Fraction(start)) for start in set(begins.values())}
    return {node: left[start] for node, start in begins.items()}


def whole_targets(
    items: int, capability: Mapping[str, float], starts: Mapping[str, float] = NO_STARTS
) -> dict[str, int]:
    """Share out `items` by `fair_shares` in whole items that add up to `items`.

    Every node gets its share rounded down; the items left over go to the largest remainders, among equal
    ones to the first node by name. A capability of 0 gets nothing. Source: paper, Algorithm 1, step 4, in which all
    nodes begin at once.
    """
    exact = fair_shares(items, capability, starts)
    targets = {node: math.floor(share) for node, share in exact.items()}
    left_over = items - sum(targets.values())
    for node in sorted(exact, key=lambda node: (sort_key(targets[node] - exact[node]), node))[:left_over]:
        targets[node] += 1
    return targets


def quickest_shares(
    items: int, capability: Mapping[str, float], starts: Mapping[str, float] = NO_STARTS
) -> dict[str, int]:
    """Share out `items` in whole items so that max(s_i + L_i / C_i) is the least: no whole division ends earlier.

    Every node gets its exact share rounded down; each item left over goes where it would be finished first, among
    equal ones to the first node by name. Largest remainders, as in `whole_targets`, may give a slow node one more
    item than it has time for. A capability of 0 gets nothing.
    """
    seconds = seconds_until(earliest_end(items, capability, starts), capability, starts)
    counts = {node: floor_product(value, seconds[node]) for node, value in capability.items()}

    def finish_next(node: str) -> End:
        return End(node, counts[node] + 1, capability[node], starts.get(node, 0))

    finished = [finish_next(node) for node, value in capability.items() if value]
    heapq.heapify(finished)
    for _ in range(items - sum(counts.values())):
        node = finished[0].node
        counts[node] += 1
        heapq.heapreplace(finished, finish_next(node))
    return counts


class End:
    """When a node with a capability above 0 that begins at `start` has done so many items; sorts by that, then by node.

    It is a ratio of whole numbers that is not reduced: a plan compares thousands of them, and reduces few.
    """

    __slots__ = ("above", "below", "node")

    def __init__(self, node: str, items: int, capability: float, start: float) -> None:
        above, below = capability.as_integer_ratio()
        begins, parts = start.as_integer_ratio()
        self.above = begins * above + items * below * parts
        self.below = parts * above
        self.node = node

    def __lt__(self, other: End) -> bool:
        mine, others = self.above * other.below, other.above * self.below
        return mine < others or (mine == others and self.node < other.node)

    @property
    def seconds(self) -> Fraction:
        """The moment itself."""
        return Fraction(self.above, self.below)


def floor_product(value: float, seconds: Fraction) -> int:
    """Both multiplied exactly, and rounded down.

    >>> floor_product(0.5, Fraction(7))
    3
    """
    above, below = value.as_integer_ratio()
    return above * seconds.numerator // (below * seconds.denominator)


def _sum_exactly(values: Sequence[float]) -> Fraction:
    ratios = [value.as_integer_ratio() for value in values]
    below = math.lcm(*(one for _, one in ratios))
    return Fraction(sum(above * (below // one) for above, one in ratios), below)


def ends(items: int, capability: float, start: float | Fraction = 0.0) -> Fraction:
    """When a node with a capability above 0 that begins at `start` has done `items` items."""
    needs = items / Fraction(capability)
    return Fraction(start) + needs if start else needs


def sort_key(number: Fraction) -> tuple[float, Fraction]:
    """What sorts as the fraction itself does, but sooner: floats are compared, fractions only where those are equal."""
    return nearest_float(number), number


def nearest_float(number: Fraction) -> float:
    """A fraction as a float, the largest one for what is beyond."""
    try:
        return float(number)
    except OverflowError:
        return sys.float_info.max


def level(parts: dict[str, list[Part]], targets: Mapping[str, int]) -> Plan:
    """Move items from nodes above their target to nodes below it: Algorithm 1, steps 5 to 8.

    Each move is min(delta_h, delta_l) items, so it puts h or l at its target and the loop ends after
    fewer moves than there are nodes. Nodes are taken in order of name; items leave from the end of a
    node's list, and a block is split where a move ends inside it. `parts` is changed.
    """
    delta = {node: sum(part.items for part in mine) - targets[node] for node, mine in sorted(parts.items())}
    high = [node for node in reversed(delta) if delta[node] > 0]
    low = [node for node in reversed(delta) if delta[node] < 0]
    while high and low:
        h, l = high[-1], low[-1]  # noqa: E741 the paper's names
        items = min(delta[h], -delta[l])
        parts[l] += _take_last(parts[h], items)
        delta[h] -= items
        delta[l] += items
        if delta[h] == 0:
            high.pop()
        if delta[l] == 0:
            low.pop()
    return Plan({node: tuple(mine) for node, mine in parts.items()})


def _take_last(parts: list[Part], items: int) -> list[Part]:
    taken = []
    while items:
        part = parts.pop()
        if part.items > items:
            kept = part.items - items
            parts.append(part._replace(items=kept))
            part = part._replace(first=part.first + kept, items=items)
        taken.append(part)
        items -= part.items
    return taken[::-1]
