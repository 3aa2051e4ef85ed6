"""Whether the daemons of a cluster do their work, asked from outside."""

from __future__ import annotations

import socket
from collections.abc import Callable

from hadoop.errors import HadoopError
from hadoop.local import ports
from hadoop.local.state import Cluster
from hadoop.rest.addresses import namenode_http, resourcemanager_http
from hadoop.rest.namenode import NameNode
from hadoop.rest.pages import Limits
from hadoop.rest.resourcemanager import ResourceManager

_LIMITS = Limits(connect=3.0, silence=3.0, seconds=10.0)


def find_missing(cluster: Cluster) -> list[str]:
    """Name what is not ready yet, in words; an empty list means that the whole cluster works."""
    return [
        *_missing_of(cluster, "NameNode", "DataNodes", live_datanodes),
        *_missing_of(cluster, "ResourceManager", "NodeManagers", running_nodemanagers),
        *_count_missing("sshds", cluster, {node for node in cluster.nodes if answers_ssh(node)}),
    ]


def live_datanodes(cluster: Cluster) -> set[str] | None:
    """Ask the NameNode which nodes' DataNodes are alive; None while it does not answer or is in safe mode."""
    try:
        return NameNode(namenode_http(cluster.conf_dir), _LIMITS).live_hosts()
    except HadoopError:
        return None


def running_nodemanagers(cluster: Cluster) -> set[str] | None:
    """Ask the ResourceManager which nodes run; None while it does not answer."""
    try:
        return ResourceManager(resourcemanager_http(cluster.conf_dir), limits=_LIMITS).running_nodes()
    except HadoopError:
        return None


def answers_ssh(node: str) -> bool:
    """Tell whether an SSH server greets on this node."""
    try:
        with socket.create_connection((node, ports.SSHD), timeout=_LIMITS.connect) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _missing_of(cluster: Cluster, master: str, workers: str, ask: Callable[[Cluster], set[str] | None]) -> list[str]:
    ready = ask(cluster)
    return [master] if ready is None else _count_missing(workers, cluster, ready)


def _count_missing(what: str, cluster: Cluster, ready: set[str]) -> list[str]:
    missing = len(set(cluster.nodes) - ready)
    return [f"{missing} of {cluster.size} {what}"] if missing else []
