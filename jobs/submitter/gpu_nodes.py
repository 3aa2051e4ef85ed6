"""Which nodes have the GPUs that a task wants, by what YARN counts and what they tell the service of each."""

from __future__ import annotations

from collections.abc import Iterable

from boxes.gpus.cards import Wanted, asked, find_obstacle, read_told
from hadoop.rest.resourcemanager import NodeRoom
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from jobs.kinds.task.request import GPU

CARDS = "gpu_cards"
"""Data name of a node's GPUs, each by itself."""


def find_lacking(client: InfoClient, wanted: Wanted, rooms: Iterable[NodeRoom]) -> dict[str, str]:
    """Those of the nodes that have no such GPUs, with the reason, those that have most GPUs first; InfoError.

    It is about what cards are, which does not change by the minute, so an agent that is silent now counts, too. Which
    are free, YARN knows, and in the end the node itself. Where YARN counts no GPUs at all, it refuses the task itself.
    """
    if not wanted.count:
        return {}
    try:
        told = {one.node_name: read_told(one.data_value or "") for one in client.data(CARDS)}
    except NotFound:
        told = {}
    found = [(room, _find_uncounted(wanted, room) or find_obstacle(wanted, told.get(room.node_name))) for room in rooms]
    lacking = [(room.node_name, why) for room, why in found if why]
    lacking.sort(key=lambda one: (-len(told.get(one[0]) or ()), one[0]))
    return dict(lacking)


def _find_uncounted(wanted: Wanted, room: NodeRoom) -> str:
    """Why a task would wait there for ever, "" where YARN counts enough, or none anywhere."""
    counted = room.total.get(GPU, wanted.count)
    if counted >= wanted.count:
        return ""
    return f"YARN counts {counted or 'no'} GPU{'' if counted == 1 else 's'}, and {asked(wanted)}"
