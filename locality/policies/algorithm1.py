"""The paper's Algorithm 1: start from where the data lies, then level the loads to the capabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locality.balance import check_blocks, check_capability, level, stored_distribution, whole_targets
from locality.types import NO_TERMS, Block, Plan, Terms


def plan(blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms = NO_TERMS) -> Plan:
    """Divide `blocks` so that node i gets C_i / sum(C) of all items, moving as few items as that takes.

    A node that begins later by `terms.starts` gets less, so that all end together: see `fair_shares`.
    `capability` is a number >= 0 per node, in any unit; 0 gets nothing. No blocks make an empty plan.
    PlanError names an unusable block or capability. Source: paper, Algorithm 1; targets are made whole by
    largest remainder.
    """
    check_blocks(blocks)
    check_capability(capability)
    items = sum(block.items for block in blocks)
    return level(stored_distribution(blocks, capability), whole_targets(items, capability, terms.starts))
