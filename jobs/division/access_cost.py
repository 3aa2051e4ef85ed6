"""What it costs a node to read from another, as the information service has it."""

from __future__ import annotations

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from jobs.errors import JobError
from locality.cost import AccessCost, CostError

DATA_NAME = "access_cost"


def access_cost(client: InfoClient) -> AccessCost:
    """The latest access cost that the service has, its ages as of now.

    A service that has none gives one that `is_empty`. JobError when the value makes no sense, InfoError when there is
    no answer.
    """
    try:
        known = [datum for datum in client.data(DATA_NAME) if datum.data_value is not None]
    except NotFound:
        return AccessCost()
    if not known:
        return AccessCost()
    latest = min(known, key=lambda datum: datum.age or 0.0)
    try:
        return AccessCost.from_json(str(latest.data_value), latest.age or 0.0)
    except CostError as error:
        raise JobError(f"{DATA_NAME} of {latest.node_name}: {error}") from error
