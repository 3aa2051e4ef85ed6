"""What no plan can beat: the shortest makespan and the fewest bytes moved; and what a plan does move."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from locality.local_reads import LocalReads
from locality.types import Block, Part, Plan, PlanError


@dataclass(frozen=True)
class Moved:
    """What a plan lets nodes read from others: `images` pictures of together `size_bytes` bytes."""

    images: int
    size_bytes: int


def makespan_lower_bound(images: int, speeds: Mapping[str, float]) -> float:
    """Seconds that `images` pictures take at least on nodes of `speeds` pictures per second.

    bound = images / sum(speeds): if pictures could be cut into fractions and moved for nothing, all nodes
    would end at the same moment, and then none could do more. PlanError unless every speed is finite and
    0 or more, and one is above 0.
    """
    for node, speed in speeds.items():
        if not math.isfinite(speed) or speed < 0:
            raise PlanError(
                f"the speed of node {node} is {speed}: it must be a finite number of 0 or more, in pictures per second"
            )
    total = math.fsum(speeds.values())
    if total == 0 and images:
        raise PlanError("no node has a speed above 0, so the work never ends: measure at least one node")
    return images / total if images else 0.0


def moved(plan: Plan) -> Moved:
    """The pictures and bytes that `plan` gives to nodes that hold no replica of them."""
    parts = [part for node, mine in plan.parts.items() for part in mine if not _is_local(part, node)]
    return Moved(sum(part.images for part in parts), round(math.fsum(part.size_bytes for part in parts)))


def fewest_bytes_moved(blocks: Sequence[Block], targets: Mapping[str, int]) -> int:
    """The fewest bytes that any plan giving each node `targets` pictures must read from other nodes.

    A transportation problem: maximise sum(w_g x_gn) over the pictures x_gn of group g that node n reads from
    itself, w_g bytes each, with sum_n(x_gn) <= pictures of g and sum_g(x_gn) <= targets[n]; what is not in
    the sum must move. The value depends on the group alone, so the sets of pictures that can be local at
    once form a matroid, and taking the largest pictures first, rearranging those taken to make room, is
    optimal (Edmonds 1971). PlanError when the targets do not add up to the pictures of the blocks.
    """
    images = sum(block.images for block in blocks)
    if sum(targets.values()) != images or any(target < 0 for target in targets.values()):
        raise PlanError(
            f"the targets add up to {sum(targets.values())} for {images} pictures: "
            "they must be 0 or more each and add up to all pictures"
        )
    groups = Counter[tuple[float, frozenset[str]]]()
    for block in blocks:
        if block.images:
            groups[block.size_bytes / block.images, frozenset(block.replicas)] += block.images
    reads = LocalReads(targets)
    largest_first = sorted(groups.items(), key=lambda group: -group[0][0])
    must_move = (weight * (count - reads.add(homes, count)) for (weight, homes), count in largest_first)
    # Rounded down, so that no plan's rounded sum of fractions can fall below it.
    return math.floor(math.fsum(must_move) + 1e-6)


def _is_local(part: Part, node: str) -> bool:
    return node in part.block.replicas
