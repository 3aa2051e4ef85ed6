"""The two flows that planning needs: as much as possible, and everything as cheaply as possible.

Solved by OR-tools, which is imported by whoever asks for a flow: reports and records know of flows, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from locality.types import PlanError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Arcs:
    """Arc k leads from vertex `tail[k]` to vertex `head[k]` and carries at most `capacity[k]`."""

    tail: Ints
    head: Ints
    capacity: Ints

    def __add__(self, others: Arcs) -> Arcs:
        return Arcs(
            np.concatenate((self.tail, others.tail)),
            np.concatenate((self.head, others.head)),
            np.concatenate((self.capacity, others.capacity)),
        )

    def __len__(self) -> int:
        return len(self.tail)


def largest(arcs: Arcs, source: int, sink: int) -> Ints:
    """What each arc carries when as much as possible gets from `source` to `sink`."""
    from ortools.graph.python import max_flow

    solver = max_flow.SimpleMaxFlow()
    numbers = solver.add_arcs_with_capacity(arcs.tail.astype(np.int32), arcs.head.astype(np.int32), arcs.capacity)
    status = solver.solve(source, sink)
    if status != solver.OPTIMAL:
        raise _no_flow(status)
    flows: Ints = solver.flows(numbers)
    return flows


def cheapest(arcs: Arcs, costs: Ints, supplies: Ints) -> Ints:
    """What each arc carries when all `supplies` (of each vertex, below 0 for what it takes) flow at the least cost.

    `costs` are of one unit, 0 to `dearest(len(supplies))`. There must be a way for everything.
    """
    from ortools.graph.python import min_cost_flow

    solver = min_cost_flow.SimpleMinCostFlow()
    numbers = solver.add_arcs_with_capacity_and_unit_cost(
        arcs.tail.astype(np.int32), arcs.head.astype(np.int32), arcs.capacity, costs
    )
    solver.set_nodes_supplies(np.arange(len(supplies), dtype=np.int32), supplies)
    status = solver.solve()
    if status != solver.OPTIMAL:
        raise _no_flow(status)
    flows: Ints = solver.flows(numbers)
    return flows


def _no_flow(status: object) -> PlanError:
    return PlanError(
        f"the flow that the plan is made from cannot be worked out ({status})",
        remedy="items and bytes may be too many for 64 bits; divide by algorithm1, or the path in parts",
    )


def dearest(vertices: int) -> int:
    """The largest cost that fits: the solver multiplies costs by the number of vertices twice, in 64 bits."""
    return int(2**61 // vertices**2)
