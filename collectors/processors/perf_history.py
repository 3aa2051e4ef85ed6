"""Capability by experience: perf_history.py DATA_NAME

    C_i = the latest speed recorded on node i under DATA_NAME, in the unit of that name (images per second)

Jobs write the speed when they end, one data name for each program. Without a fresh record there is no capability:
exit 3.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from infosvc.client import InfoClient
from infosvc.errors import InfoError, NotFound
from infosvc.records import Datum, State

NO_DATA = 3


def capability(recorded: Iterable[Datum], node_name: str) -> float | None:
    """The node's fresh speed, or None; ValueError when the record is no positive number."""
    for datum in recorded:
        if datum.node_name == node_name and datum.state is State.FRESH:
            if datum.number() <= 0:
                raise ValueError(f"{datum.data_name} on {node_name} is {datum.data_value}, which is no speed")
            return datum.number()
    return None


def main() -> int:
    """Read the recorded speed of this node, print it."""
    if len(sys.argv) != 2:
        raise ValueError("give the data name of the recorded speed, for example: images_per_second:mxnet_alexnet")
    node_name = os.environ["NODE_NAME"]
    told = os.environ
    client = InfoClient.from_token_file(
        told["INFOSVC_URL"], told.get("INFOSVC_TOKEN_FILE"), ca_file=told.get("NODEWISE_CA_FILE")
    )
    try:
        speed = capability(client.data(sys.argv[1], node=node_name), node_name)
    except NotFound:
        speed = None
    if speed is None:
        print(f"no fresh {sys.argv[1]} of {node_name}: the program has not run there yet", file=sys.stderr)
        return NO_DATA
    print(f"{speed:g}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, InfoError) as error:
        sys.exit(f"perf_history: {error}")
