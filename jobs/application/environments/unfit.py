"""Which nodes cannot run an environment, by what they tell the information service."""

from __future__ import annotations

from collections.abc import Iterable

from environments.fit import ARCHITECTURE, DRIVER, FLAGS, find_obstacle
from environments.manifest import Requires
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound

_NOTHING = Requires()


def find_unfit(client: InfoClient, requires: Requires, nodes: Iterable[str]) -> dict[str, str]:
    """Those of the nodes that cannot run what requires this, with the reason; InfoError when that cannot be known.

    The service is not asked where nothing is required, and not missed where no card is.
    """
    if requires == _NOTHING:
        return {}
    try:
        told = tell_nodes(client)
    except InfoError:
        if requires.cuda or requires.driver:
            raise
        told = {}
    found = {node: find_obstacle(requires, told.get(node, {})) for node in nodes}
    return {node: why for node, why in found.items() if why}


def tell_nodes(client: InfoClient) -> dict[str, dict[str, str]]:
    """What decides, by node and data name; of nodes that tell nothing there is nothing."""
    found: dict[str, dict[str, str]] = {}
    for name in (ARCHITECTURE, FLAGS, DRIVER):
        try:
            told = client.data(name)
        except NotFound:
            continue
        for one in told:
            if one.data_value is not None:
                found.setdefault(one.node_name, {})[name] = one.data_value
    return found
