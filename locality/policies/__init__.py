"""The policies by name; a new one is a file here and a line in POLICIES."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol

from locality.types import Block, Plan, PlanError, Terms


class Policy(Protocol):
    """A pure function that divides blocks among nodes."""

    def __call__(self, blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms = ..., /) -> Plan:
        """Return a plan of every item and every node of `capability`; PlanError on bad input."""


def by_name(*names: str) -> dict[str, Policy]:
    """Name -> policy: the function `plan` of the file of that name in this folder."""
    return {name: import_module(f"{__name__}.{name}").plan for name in names}


POLICIES = by_name(
    "algorithm1",
    "algorithm1_replicas",
    "even",
    "local_only",
    "maxflow",
    "min_cost",
)


def policy(name: str) -> Policy:
    """The policy called `name`; PlanError lists the names there are."""
    if name not in POLICIES:
        raise PlanError(f"there is no policy {name!r}", remedy=f"choose one of {', '.join(sorted(POLICIES))}")
    return POLICIES[name]
