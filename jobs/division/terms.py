"""What a plan takes into account beside blocks and capability: the same for a job and for `nodewise locality plan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from infosvc.wire.client import InfoClient
from jobs.division.access_cost import access_cost
from jobs.errors import JobError
from locality.cost import AccessCost
from locality.types import EPSILON, Terms


def known_terms(
    client: InfoClient, racks: Mapping[str, str], say: Callable[[str], None], epsilon: float = EPSILON
) -> Terms:
    """The access cost that the service has, with the `racks` that HDFS tells; `say` hears when there is none.

    A value that makes no sense is left out: it costs the plan some knowledge, never the job. InfoError: no answer.
    """
    try:
        cost = access_cost(client)
    except JobError as error:
        say(f"planned without access cost: {error}")
        cost = AccessCost()
    return Terms(replace(cost, racks={**cost.racks, **racks}), epsilon)
