"""The rack of this node, as its NameNode knows it: rack_name.py NAMENODE_HTTP

One word that begins with a slash. A node that is not a live DataNode has no rack there: exit 3.
Nodes have no ticket of Kerberos to show: where Hadoop wants one, racks are written from elsewhere.
"""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from collectors.run import NO_DATA, node_name
from infosvc.wire.bounded_answer import read_page

LIVE_NODES = "/jmx?get=Hadoop:service=NameNode,name=NameNodeInfo::LiveNodes"
PATIENCE_SECONDS = 10.0  # for the whole answer
MOST_BYTES = 64 << 20  # of it: ten thousand DataNodes take a sixth of that

_UNAUTHORISED = f"it answered {HTTPStatus.UNAUTHORIZED}"
_WITH_KERBEROS = "it wants a ticket of Kerberos, so write racks by `nodewise data put rack_name NODE /RACK`"


def rack_name(answer: str, node_name: str) -> str | None:
    """A node's rack in the NameNode's answer, None when it is not there; ValueError when this is something else."""
    try:
        nodes: dict[str, Any] = json.loads(json.loads(answer)["beans"][0]["LiveNodes"])
        racks = {name.rpartition(":")[0]: node.get("location") for name, node in nodes.items()}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("its answer does not tell the live DataNodes: is it the web address of a NameNode?") from error
    return racks.get(node_name)


def main() -> int:
    """Ask the NameNode, print the rack."""
    address = sys.argv[1].rstrip("/") if len(sys.argv) == 2 else ""
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(
            f"{address!r} is not the web address of a NameNode: give one, for example http://127.0.2.1:9870"
        )
    try:
        rack = rack_name(read_page(address + LIVE_NODES, PATIENCE_SECONDS, MOST_BYTES).decode(), node_name())
    except (OSError, HTTPException, ValueError) as error:
        helps = _WITH_KERBEROS if str(error) == _UNAUTHORISED else "start HDFS, or name its NameNode"
        raise ValueError(f"{address} does not tell the rack ({error}): {helps}") from error
    if not rack:
        print(f"the NameNode at {address} does not tell the rack of {node_name()}", file=sys.stderr)
        return NO_DATA
    print(rack)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as error:
        sys.exit(f"rack_name: {error}")
