"""How good a plan is: its makespan beside the bound, its bytes beside the fewest, what stays local."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from locality.access import access_seconds
from locality.balance import check_capability, earliest_end, ends, nearest_float
from locality.bounds import fewest_bytes_moved, moved_load, rooms
from locality.types import NO_TERMS, Block, Plan, PlanError, Terms


@dataclass(frozen=True)
class Quality:
    """Seconds hold when the capability is in items per second; ratios always.

    `bytes_moved_optimal` is the fewest that any plan moves that ends within 1 + epsilon of the bound (`rooms`), so a
    plan that ends later may move fewer.
    `bytes_moved_over_optimal` is None where the optimum is 0 and bytes are moved. `locality_ratio` is the share of the
    items that stay where they are, `access_seconds` what all nodes together spend on reading.
    """

    makespan_seconds: float
    lower_bound_seconds: float
    makespan_over_bound: float
    bytes_moved: int
    bytes_moved_optimal: int
    bytes_moved_over_optimal: float | None
    locality_ratio: float
    loads: Mapping[str, int]
    access_seconds: float


def optimum_of(blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms = NO_TERMS) -> int:
    """The fewest bytes that any plan moves that ends within 1 + epsilon of the bound; see `fewest_bytes_moved`."""
    items = sum(block.items for block in blocks)
    return fewest_bytes_moved(blocks, rooms(items, capability, terms.epsilon, terms.starts))


def measure_quality(
    plan: Plan,
    blocks: Sequence[Block],
    capability: Mapping[str, float],
    terms: Terms = NO_TERMS,
    optimum: int | None = None,
) -> Quality:
    """Measure the quality of `plan`, a division of `blocks` among the nodes of `capability`.

    makespan = max(s_i + L_i / C_i) of the nodes with items, which begin at s_i; the bound is `earliest_end`, which is
    sum(L) / sum(C) if all begin at once. `optimum` is what `optimum_of` says, for who compares several plans. PlanError
    names an unusable capability, a node without any that has items, and a plan that is not one of these blocks and
    nodes.
    """
    check_capability(capability)
    loads = plan.loads()
    items = sum(block.items for block in blocks)
    if sum(loads.values()) != items or loads.keys() - capability.keys():
        raise PlanError("the plan is not one of these blocks and nodes", remedy="measure it with what it was made from")
    bound = earliest_end(items, capability, terms.starts)
    worked = [_ends(node, load, capability[node], terms.starts.get(node, 0)) for node, load in loads.items() if load]
    makespan = max(worked, default=Fraction(0))
    went = moved_load(plan)
    if optimum is None:
        optimum = optimum_of(blocks, capability, terms)
    return Quality(
        makespan_seconds=nearest_float(makespan),
        lower_bound_seconds=nearest_float(bound),
        makespan_over_bound=nearest_float(makespan / bound) if bound else 1.0,
        bytes_moved=went.size_bytes,
        bytes_moved_optimal=optimum,
        bytes_moved_over_optimal=ratio(went.size_bytes, optimum),
        locality_ratio=1 - went.items / items if items else 1.0,
        loads=loads,
        access_seconds=access_seconds(plan, terms.cost),
    )


def ratio(value: float, least: float) -> float | None:
    """value / least; 1 where both are 0, None where only the least is."""
    if least:
        return value / least
    return None if value else 1.0


def _ends(node: str, load: int, capability: float, start: float) -> Fraction:
    if not capability:
        raise PlanError(f"node {node} has {load} items and the capability 0", remedy="it would never end; plan again")
    return ends(load, capability, start)
