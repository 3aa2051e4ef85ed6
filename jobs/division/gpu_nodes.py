"""Which nodes have the GPUs that a program wants, by what YARN counts and what they tell the service of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxes.gpus.cards import Wanted, asked, find_obstacle, read_told
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound
from infosvc.wire.records import Datum, State
from jobs.errors import JobError

GPU = "yarn.io/gpu"
"""What YARN calls a GPU that it counts."""
CARDS = "gpu_cards"
"""Data name of a node's GPUs, each by itself."""
MISSING, NOTHING = "driver_missing", "none"
"""Data name of what CDI files of a node name and is not there, and its value where all is."""


def find_lacking(client: InfoClient, wanted: Wanted, counted: Mapping[str, int | None]) -> dict[str, str]:
    """Those of the nodes that have no such GPUs, with the reason, those that have most GPUs first; InfoError.

    `counted` are the GPUs of each node as YARN counts them, None where it counts no GPUs at all: then YARN itself
    refuses who asks for some.

    It is about what cards are, which does not change by the minute, so an agent that is silent now counts, too. Which
    are free, YARN knows, and in the end the node itself. A CDI file may be written anew at any moment, so of that only
    what is fresh counts. The service is not missed where any card will do.
    """
    if not wanted.count:
        return {}
    told = {one.node_name: read_told(one.data_value or "") for one in _values(client, CARDS, wanted)}
    missing = {one.node_name: _tell_missing(one) for one in _values(client, MISSING, wanted)}
    found = [
        (node, _find_uncounted(wanted, number) or find_obstacle(wanted, told.get(node)) or missing.get(node, ""))
        for node, number in counted.items()
    ]
    lacking = [(node, why) for node, why in found if why]
    lacking.sort(key=lambda one: (-len(told.get(one[0]) or ()), one[0]))
    return dict(lacking)


def leave_out_lacking(nodes: Sequence[str], lacking: Mapping[str, str], wish: str) -> list[str]:
    """The nodes without those that lack the GPUs of a `wish`; JobError, with the reason of one, when that leaves none.

    >>> leave_out_lacking(["a", "b"], {"a": "it has no GPU, and 1 is asked for"}, "it asks for")
    ['b']
    """
    able = [node for node in nodes if node not in lacking]
    if not able:
        node = next(one for one in lacking if one in nodes)
        example = node if len(nodes) == 1 else f"{node}, for example"
        raise JobError(
            f"none of the nodes that may run it has the GPUs that {wish}: on {example}, {lacking[node]}",
            remedy="ask for fewer by --gpus, or for others by --gpu-model, --gpu-memory and --gpu-capability",
        )
    return able


def _values(client: InfoClient, name: str, wanted: Wanted) -> list[Datum]:
    try:
        return list(client.data(name))
    except NotFound:
        return []
    except InfoError:
        if wanted.is_picky:
            raise
        return []


def _tell_missing(told: Datum) -> str:
    if told.state is not State.FRESH or told.data_value in (None, NOTHING):
        return ""
    return f"{told.data_value}, so an operator has to write the CDI file anew"


def _find_uncounted(wanted: Wanted, counted: int | None) -> str:
    """Why a program would wait there for ever, "" where YARN counts enough, or none anywhere."""
    if counted is None or counted >= wanted.count:
        return ""
    return f"YARN counts {counted or 'no'} GPU{'' if counted == 1 else 's'}, and {asked(wanted)}"
