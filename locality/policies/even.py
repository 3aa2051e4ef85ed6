"""Everyone the same: Algorithm 1 with equal capabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locality.balance import check_capability
from locality.policies import algorithm1
from locality.types import NO_TERMS, Block, Plan, Terms


def plan(blocks: Sequence[Block], capability: Mapping[str, float], _terms: Terms = NO_TERMS) -> Plan:
    """Divide `blocks` so that all nodes get the same number of items, give or take one.

    A capability of 0 still means that a node gets nothing; above 0 it makes no difference. No blocks make an
    empty plan. PlanError names an unusable block or capability.
    """
    check_capability(capability)
    return algorithm1.plan(blocks, {node: float(value > 0) for node, value in capability.items()})
