"""For which nodes YARN is asked first, so that a task is done soonest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hadoop.rest.resourcemanager import NodeOrder
from infosvc.wire.tasks import ConsideredNode
from jobs.application.submit import Order
from jobs.kinds.task.request import preferring, waiting
from jobs.submitter.soonest import find_patience, find_soonest


def prefer_soonest(
    asked: Order,
    nodes: Sequence[ConsideredNode],
    order: NodeOrder | None,
    ready_seconds: Mapping[str, float],
    may_wait: bool = True,
) -> Order:
    """A task with the nodes that it prefers.

    One that may use any node gets one of these if they have room, else soon another. YARN knows no preference among
    nodes to which something is bound: a task that may use some nodes alone is for the soonest of them at first, if it
    `may_wait` for these and that pays, and else has no preference.
    """
    soonest = preferring(asked, find_soonest(nodes, order), ready_seconds)
    if not asked.master.hosts:
        return soonest
    seconds = find_patience(nodes, order) if may_wait else 0.0
    return waiting(soonest, seconds) if seconds else preferring(asked, (), ready_seconds)
