"""Which DataNodes hold the end of a file, and which of them answer now; the NameNode learns late that one is gone."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from hadoop.client.filesystem import REMEDY, FileSystem
from hadoop.client.jvm import java_errors

ANSWER_SECONDS = 1.0


class DataNode(NamedTuple):
    """Where a DataNode takes and gives blocks: the NameNode knows it by its `ip`, clients reach it at `host`."""

    ip: str
    port: int
    host: str


def last_holders(filesystem: FileSystem, name: str) -> list[DataNode]:
    """Those to which the last block of a file is written, the writer's neighbour first; none while it has no block."""
    with java_errors(f"asking who holds {name}", REMEDY):
        path = filesystem.path(name).toUri().getPath()
        block = filesystem.java.getClient().getLocatedBlocks(path, 0).getLastLocatedBlock()
        by_name = filesystem.java.getConf().getBoolean("dfs.client.use.datanode.hostname", False)
        return [_data_node(one, by_name) for one in (block.getLocations() if block else ())]


def find_answering(nodes: Sequence[DataNode]) -> list[DataNode]:
    """Those that can be reached, and whose process runs: the kernel alone takes connections for one that is frozen."""
    if not nodes:
        return []
    with ThreadPoolExecutor(len(nodes)) as pool:
        return [node for node, answers in zip(nodes, pool.map(_answers, nodes), strict=True) if answers]


def _answers(node: DataNode) -> bool:
    """Whether it hangs up on who has nothing to say, as DataNodes do."""
    try:
        with socket.create_connection((node.host, node.port), ANSWER_SECONDS) as connection:
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(1) == b""
    except OSError:
        return False


def _data_node(info: Any, by_name: bool) -> DataNode:
    ip = str(info.getIpAddr())
    return DataNode(ip, int(info.getXferPort()), str(info.getHostName()) if by_name else ip)
