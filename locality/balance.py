"""The steps that policies share: check, stored distribution, whole-number targets, levelled loads."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from locality.types import Block, Part, Plan, PlanError


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


def whole_targets(items: int, capability: Mapping[str, float]) -> dict[str, int]:
    """Share out `items` by L_i^o = C_i / sum(C) * sum(L) in whole items that add up to `items`.

    Every node gets its share rounded down; the items left over go to the largest remainders, among equal
    ones to the first node by name. A capability of 0 gets nothing. Source: paper, Algorithm 1, step 4.
    """
    exact = whole_numbers(capability)
    total = sum(exact.values())
    targets, remainders = {}, {}
    for node, value in exact.items():
        targets[node], remainders[node] = divmod(value * items, total)
    left_over = items - sum(targets.values())
    for node in sorted(remainders, key=lambda node: (-remainders[node], node))[:left_over]:
        targets[node] += 1
    return targets


def quickest_shares(items: int, capability: Mapping[str, float]) -> dict[str, int]:
    """Share out `items` in whole items so that max(L_i / C_i) is the least: no division of whole ones ends earlier.

    Every node gets its exact share rounded down; each item left over goes where it would be finished first, among
    equal ones to the first node by name. Largest remainders, as in `whole_targets`, may give a slow node one more
    item than it has time for. A capability of 0 gets nothing.
    """
    exact = whole_numbers(capability)
    total, most = sum(exact.values()), max(exact.values())
    counts = {node: value * items // total for node, value in exact.items()}
    speeds = {node: value / most for node, value in exact.items() if value / most}
    finished = [((counts[node] + 1) / speed, node) for node, speed in speeds.items()]
    heapq.heapify(finished)
    for _ in range(items - sum(counts.values())):
        _, node = finished[0]
        counts[node] += 1
        heapq.heapreplace(finished, ((counts[node] + 1) / speeds[node], node))
    return counts


def whole_numbers(capability: Mapping[str, float]) -> dict[str, int]:
    """Capabilities in the same ratios as whole numbers, exactly, because every float is one over a power of two."""
    ratios = {node: value.as_integer_ratio() for node, value in capability.items()}
    common = max(below for _, below in ratios.values())
    return {node: above * (common // below) for node, (above, below) in ratios.items()}


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
