"""What is set beside each other: every policy, and the plain ways to divide work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from locality.baselines import greedy_least_finish
from locality.policies import POLICIES, Policy
from locality.types import NO_TERMS, Block, Plan, Terms

OURS = "maxflow"
"""The policy that has to reach the figures."""
PULL = "first-come pull"
GREEDY = "greedy least-finish"


def _greedy(blocks: Sequence[Block], capability: Mapping[str, float], _terms: Terms = NO_TERMS) -> Plan:
    return greedy_least_finish(blocks, capability)


PLANNERS: dict[str, Policy] = {**POLICIES, GREEDY: _greedy}
"""Whatever makes a plan; first-come pull makes none."""
MOST_BLOCKS = {"min_cost": 100_000}
"""Methods that are planned on the clock for so many blocks at most: above, they take minutes and gigabytes."""
METHODS = (*PLANNERS, PULL)
