"""The policies by name; a new one is a file here and a line in POLICIES."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from locality.policies import algorithm1, algorithm1_replicas, even, local_only, maxflow, min_cost
from locality.types import Block, Plan, PlanError, Terms


class Policy(Protocol):
    """A pure function that divides blocks among nodes."""

    def __call__(self, blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms = ..., /) -> Plan:
        """Return a plan of every item and every node of `capability`; PlanError on bad input."""


def by_name(*entries: tuple[str, Policy]) -> dict[str, Policy]:
    """Name -> policy; PlanError when two policies have the same name."""
    policies: dict[str, Policy] = {}
    for name, chosen in entries:
        if name in policies:
            raise PlanError(f"two policies are called {name!r}: rename one of them in POLICIES")
        policies[name] = chosen
    return policies


POLICIES = by_name(
    ("algorithm1", algorithm1.plan),
    ("algorithm1_replicas", algorithm1_replicas.plan),
    ("even", even.plan),
    ("local_only", local_only.plan),
    ("maxflow", maxflow.plan),
    ("min_cost", min_cost.plan),
)


def policy(name: str) -> Policy:
    """The policy called `name`; PlanError lists the names there are."""
    if name not in POLICIES:
        raise PlanError(f"there is no policy {name!r}: choose one of {', '.join(sorted(POLICIES))}")
    return POLICIES[name]
