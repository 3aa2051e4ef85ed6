"""How many blocks and bytes of an HDFS path each node holds: block_distribution.py NAMENODE_HTTP PATH

    {node: {"blocks": number of block replicas on the node, "bytes": their bytes}}

One line of JSON, nodes by name. A path that holds no block has no distribution: exit 3.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from hadoop.errors import HadoopError
from hadoop.webhdfs import StoredBlock, WebHdfs

NO_DATA = 3


def distribution(blocks: Iterable[StoredBlock]) -> dict[str, dict[str, int]]:
    """Node -> its blocks and bytes; a block counts once on every node that holds a replica."""
    held: dict[str, dict[str, int]] = {}
    for block in blocks:
        for host in block.hosts:
            node = held.setdefault(host, {"blocks": 0, "bytes": 0})
            node["blocks"] += 1
            node["bytes"] += block.length
    return held


def main() -> int:
    """Ask the NameNode, print the distribution."""
    if len(sys.argv) != 3:
        raise HadoopError("give the NameNode's web address and a path: http://127.0.2.1:9870 /data/images")
    with WebHdfs(sys.argv[1]) as namenode:
        held = distribution(namenode.blocks(sys.argv[2]))
    if not held:
        print(f"{sys.argv[2]} holds no block", file=sys.stderr)
        return NO_DATA
    print(json.dumps(held, sort_keys=True))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except HadoopError as error:
        sys.exit(f"block_distribution: {error}")
