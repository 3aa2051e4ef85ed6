"""On which nodes a task would be done soonest, by how good they are for it and how soon they are ready to begin."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from hadoop.rest.resourcemanager import NodeOrder
from infosvc.wire.tasks import ConsideredNode

USUAL_SECONDS = 30.0
"""That a task is taken to run on the best node, as nothing tells: on one with half its score it runs twice as long."""
SAME_SECONDS = 0.5
"""So much more makes no difference."""


def find_soonest(nodes: Iterable[ConsideredNode], order: NodeOrder | None) -> list[str]:
    """The nodes to be preferred of those that may run a task and have room, by name.

    None where all are ready at about the same moment: then the order says everything.
    """
    able = {one.node_name: one.ready_seconds or 0.0 for one in nodes if one.allowed and one.has_room}
    if not able or max(able.values()) - min(able.values()) <= SAME_SECONDS:
        return []
    runs = _find_run_seconds(able, _find_standing(order))
    least = min(able[node] + runs[node] for node in able)
    return sorted(node for node in able if able[node] + runs[node] <= least + SAME_SECONDS)


def _find_run_seconds(nodes: Collection[str], standing: Mapping[str, float]) -> dict[str, float]:
    """How long a task would run on each node; nodes that an order does not show are not among its best."""
    best = max((standing.get(node, 0.0) for node in nodes), default=0.0)
    if best <= 0:
        return dict.fromkeys(nodes, USUAL_SECONDS)
    scores = {node: standing.get(node, 0.0) for node in nodes}
    return {node: USUAL_SECONDS * best / score if score > 0 else math.inf for node, score in scores.items()}


def _find_standing(order: NodeOrder | None) -> dict[str, float]:
    """The scores of an order, each at most that of the node before it: some come last whatever their score is."""
    found: dict[str, float] = {}
    least = math.inf
    for node, score in order.first if order and order.age_seconds is not None else ():
        found[node] = least = min(least, score)
    return found
