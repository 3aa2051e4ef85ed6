"""Algorithm 1 begun from the best of the stored distributions: which replica counts as the place is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locality.balance import check_blocks, check_capability, whole_targets
from locality.parts import plan_exactly
from locality.types import NO_TERMS, Block, Plan, Terms


def plan(blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms = NO_TERMS) -> Plan:
    """Divide `blocks` so that node i gets exactly its share C_i / sum(C), moving the fewest bytes that takes.

    Step 1 of Algorithm 1 takes the stored distribution as the first partition. With replicas there are many; this one
    begins with that in which the fewest bytes are above the targets, and steps 5 to 8 move just these. A node that
    begins later by `terms.starts` gets less: see `fair_shares`. PlanError names an unusable block or capability.
    Source: paper, Algorithm 1, targets made whole by largest remainder.
    """
    check_blocks(blocks)
    check_capability(capability)
    targets = whole_targets(sum(block.items for block in blocks), capability, terms.starts)
    return plan_exactly(blocks, {node: targets[node] for node, value in capability.items() if value > 0}, capability)
