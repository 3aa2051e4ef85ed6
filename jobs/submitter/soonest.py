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
LEAST_GAIN_SECONDS = 5.0
"""For less it does not pay to wait for some nodes alone: YARN takes a second or two to give one."""


def find_soonest(nodes: Iterable[ConsideredNode], order: NodeOrder | None) -> list[str]:
    """The nodes to be preferred of those that may run a task and have room, by name.

    None where all are ready at about the same moment: then the order says everything.
    """
    ends = _find_ends(nodes, order)
    least = min(ends.values(), default=0.0)
    return sorted(node for node, seconds in ends.items() if seconds <= least + SAME_SECONDS)


def find_patience(nodes: Iterable[ConsideredNode], order: NodeOrder | None) -> float:
    """The seconds that a task may wait for the soonest nodes alone: those that it gains there; 0 for too few.

    So it is never later than twice that, whatever becomes of the room of these nodes.
    """
    ends = _find_ends(nodes, order)
    least = min(ends.values(), default=0.0)
    gain = min((seconds for seconds in ends.values() if seconds > least + SAME_SECONDS), default=least) - least
    return gain if gain >= LEAST_GAIN_SECONDS else 0.0


def _find_ends(nodes: Iterable[ConsideredNode], order: NodeOrder | None) -> dict[str, float]:
    """After how many seconds a task would be done on each node that it may have now; empty as `find_soonest` says."""
    able = {one.node_name: one.ready_seconds or 0.0 for one in nodes if one.allowed and one.has_room}
    if not able or max(able.values()) - min(able.values()) <= SAME_SECONDS:
        return {}
    runs = _find_run_seconds(able, _find_standing(order))
    return {node: able[node] + runs[node] for node in able}


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
