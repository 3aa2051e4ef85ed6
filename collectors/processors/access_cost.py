"""What it costs each node to read what another one holds, from all that nodes have measured: access_cost.py

One line of JSON in the form of locality.cost, which tells how the matrix is made of it. Ages in it are those at the
moment of this value. What makes no sense is left out and named on stderr. Without any measurement: exit 3.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from collectors.peers import known_racks
from collectors.run import NO_DATA, service
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Datum
from locality.cost import AccessCost, Rate

DISK, PEERS = "disk_sequential_read_bytes_per_second", "peer_throughput"


def pairs(datum: Datum) -> dict[tuple[str, str], Rate]:
    """The rates of the pairs (reader, holder) that a node has measured as the reader."""
    reader, since, seen = datum.node_name, datum.age or 0.0, json.loads(datum.data_value or "")
    others = [(peer, one) for peer, one in seen.items() if peer != reader]
    return {(reader, peer): Rate(one["bytes_per_second"], one["age_seconds"] + since) for peer, one in others}


def sound(data: Iterable[Datum], read: Callable[[Datum], dict[Any, Rate]]) -> dict[Any, Rate]:
    """What `read` makes of all values; one that makes no sense is left out."""
    rates: dict[Any, Rate] = {}
    for datum in (datum for datum in data if datum.data_value is not None):
        try:
            rates |= read(datum)
        except (InfoError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            print(f"left out {datum.data_name} of {datum.node_name}: {error}", file=sys.stderr)
    return rates


def main() -> int:
    """Read what was measured, print the cost."""
    client = service()
    data = client.data_many([DISK, PEERS])
    disks = sound(data[DISK], lambda datum: {datum.node_name: Rate(datum.number(), datum.age or 0.0)})
    cost = AccessCost(disks, sound(data[PEERS], pairs), known_racks(client))
    if cost.is_empty:
        print("nothing was measured yet: see `nodewise slot list`", file=sys.stderr)
        return NO_DATA
    print(cost.to_json())
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InfoError as error:
        sys.exit(f"access_cost: {error}")
