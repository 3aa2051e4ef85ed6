"""Which nodes have the GPUs that a program wants, by what YARN counts and what they tell the service of each."""

from __future__ import annotations

from collections.abc import Mapping

from boxes.gpus.cards import Wanted, asked, find_obstacle, read_told
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound

GPU = "yarn.io/gpu"
"""What YARN calls a GPU that it counts."""
CARDS = "gpu_cards"
"""Data name of a node's GPUs, each by itself."""


def find_lacking(client: InfoClient, wanted: Wanted, counted: Mapping[str, int | None]) -> dict[str, str]:
    """Those of the nodes that have no such GPUs, with the reason, those that have most GPUs first; InfoError.

    `counted` are the GPUs of each node as YARN counts them, None where it counts no GPUs at all: then YARN itself
    refuses who asks for some.

    It is about what cards are, which does not change by the minute, so an agent that is silent now counts, too. Which
    are free, YARN knows, and in the end the node itself. The service is not missed where any card will do.
    """
    if not wanted.count:
        return {}
    try:
        told = {one.node_name: read_told(one.data_value or "") for one in client.data(CARDS)}
    except NotFound:
        told = {}
    except InfoError:
        if wanted.is_picky:
            raise
        told = {}
    found = [
        (node, _find_uncounted(wanted, number) or find_obstacle(wanted, told.get(node)))
        for node, number in counted.items()
    ]
    lacking = [(node, why) for node, why in found if why]
    lacking.sort(key=lambda one: (-len(told.get(one[0]) or ()), one[0]))
    return dict(lacking)


def _find_uncounted(wanted: Wanted, counted: int | None) -> str:
    """Why a program would wait there for ever, "" where YARN counts enough, or none anywhere."""
    if counted is None or counted >= wanted.count:
        return ""
    return f"YARN counts {counted or 'no'} GPU{'' if counted == 1 else 's'}, and {asked(wanted)}"
