"""Move nothing: every block is read where it lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locality.balance import check_blocks, check_capability, stored_distribution
from locality.types import NO_TERMS, Block, Plan, Terms


def plan(blocks: Sequence[Block], capability: Mapping[str, float], _terms: Terms = NO_TERMS) -> Plan:
    """Give each block to its first replica among the nodes whose capability is above 0.

    A block with no replica there goes to the node with the fewest items, the only case in which bytes
    move. No blocks make an empty plan. PlanError names an unusable block or capability.
    """
    check_blocks(blocks)
    check_capability(capability)
    parts = stored_distribution(blocks, (node for node, value in capability.items() if value > 0))
    return Plan({node: tuple(parts.get(node, ())) for node in sorted(capability)})
