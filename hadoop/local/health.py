"""Whether the daemons of a cluster do their work, asked from outside."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

from hadoop.local import ports
from hadoop.local.state import Cluster
from hadoop.rest.direct import open_direct

_TIMEOUT_SECONDS = 3.0


def waiting_for(cluster: Cluster) -> list[str]:
    """Name what is not ready yet, in words; an empty list means that the whole cluster works."""
    return [
        *_missing(cluster, "NameNode", "DataNodes", live_datanodes),
        *_missing(cluster, "ResourceManager", "NodeManagers", running_nodemanagers),
        *_of("sshds", cluster, {node for node in cluster.nodes if answers_ssh(node)}),
    ]


def _missing(cluster: Cluster, master: str, slaves: str, ask: Callable[[Cluster], set[str] | None]) -> list[str]:
    ready = ask(cluster)
    return [master] if ready is None else _of(slaves, cluster, ready)


def _of(what: str, cluster: Cluster, ready: set[str]) -> list[str]:
    missing = len(set(cluster.nodes) - ready)
    return [f"{missing} of {cluster.size} {what}"] if missing else []


def live_datanodes(cluster: Cluster) -> set[str] | None:
    """Ask the NameNode which nodes' DataNodes are alive; None while it does not answer or is in safe mode."""
    info = _get(f"{cluster.namenode_http}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")
    return None if info is None else parse_datanodes(info)


def parse_datanodes(info: dict[str, Any]) -> set[str] | None:
    """Read host names out of NameNodeInfo, whose LiveNodes is JSON in a string: `{"127.0.1.11:19001": {...}}`."""
    if not info.get("beans") or info["beans"][0].get("Safemode"):
        return None
    return {name.rpartition(":")[0] for name in json.loads(info["beans"][0]["LiveNodes"])}


def running_nodemanagers(cluster: Cluster) -> set[str] | None:
    """Ask the ResourceManager which nodes run; None while it does not answer."""
    answer = _get(f"{cluster.rm_http}/ws/v1/cluster/nodes")
    return None if answer is None else parse_nodemanagers(answer)


def parse_nodemanagers(answer: dict[str, Any]) -> set[str]:
    """Read host names out of `{"nodes": {"node": [{"nodeHostName": "127.0.2.11", "state": "RUNNING"}]}}`.

    `nodes` is null while there are none.
    """
    nodes = (answer.get("nodes") or {}).get("node", [])
    return {node["nodeHostName"] for node in nodes if node["state"] == "RUNNING"}


def answers_ssh(node: str) -> bool:
    """Tell whether an SSH server greets on this node."""
    try:
        with socket.create_connection((node, ports.SSHD), timeout=_TIMEOUT_SECONDS) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _get(url: str) -> dict[str, Any] | None:
    try:
        with open_direct(url, _TIMEOUT_SECONDS) as answer:
            found: dict[str, Any] = json.load(answer)
    except (OSError, HTTPException, ValueError):
        return None
    return found
