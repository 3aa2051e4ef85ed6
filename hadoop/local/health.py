"""Whether the daemons of a cluster do their work, asked from outside."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from typing import Any

from hadoop.errors import HadoopError
from hadoop.local import ports
from hadoop.local.state import Cluster
from hadoop.rest.masters import ACTIVE, STANDBY, read_role
from hadoop.rest.namenode import INFO, STATUS, parse_live_hosts
from hadoop.rest.pages import Limits, Pages
from hadoop.rest.resourcemanager import INFO as MANAGER_INFO
from hadoop.rest.resourcemanager import NODES, parse_running_nodes

_LIMITS = Limits(connect=3.0, silence=3.0, seconds=10.0)


def find_missing(cluster: Cluster) -> list[str]:
    """Name what is not ready yet, in words; an empty list means that the whole cluster works."""
    missing = [
        *_missing_of(cluster, "NameNode", "DataNodes", live_datanodes),
        *_missing_of(cluster, "ResourceManager", "NodeManagers", running_nodemanagers),
        *_count_missing("sshds", cluster, {node for node in cluster.nodes if answers_ssh(node)}),
    ]
    return missing or (_find_missing_masters(cluster) if cluster.ha else [])


def live_datanodes(cluster: Cluster) -> set[str] | None:
    """Ask the NameNodes which nodes' DataNodes are alive; None while none answers, or all are in safe mode."""
    return _any_of(_hosts_of_namenode(cluster, address) for address in cluster.namenodes_http)


def running_nodemanagers(cluster: Cluster) -> set[str] | None:
    """Ask the ResourceManager that is active which nodes run; None while none answers."""
    return _any_of(_hosts_of_resourcemanager(cluster, one) for one in cluster.managers_http)


def _hosts_of_namenode(cluster: Cluster, address: str) -> set[str] | None:
    """The nodes whose DataNodes the NameNode at an address knows; None while it does not answer or is in safe mode."""
    page = _ask(cluster, "NameNode", address, INFO)
    return None if page is None else parse_live_hosts(page)


def _ask(cluster: Cluster, title: str, address: str, path: str) -> Any:
    """The JSON of a daemon's page; None when it does not answer with one."""
    try:
        if not cluster.kerberos:
            return Pages(title, address, _LIMITS).read_json(path, "its state")
        from hadoop.local.kerberos import asking  # other clusters need nothing of it

        return asking.read_json(cluster.realm, f"{address}{path}")
    except HadoopError:
        return None


def _hosts_of_resourcemanager(cluster: Cluster, address: str) -> set[str] | None:
    page = _ask(cluster, "ResourceManager", address, NODES)
    return None if page is None else parse_running_nodes(page)


def _any_of(answers: Iterable[set[str] | None]) -> set[str] | None:
    """All that any of them tells, None when none does."""
    told = [answer for answer in answers if answer is not None]
    return set().union(*told) if told else None


def roles(cluster: Cluster) -> dict[tuple[str, str], str | None]:
    """For each kind of daemon and master what it is: active or standby, None while it does not answer."""
    found: dict[tuple[str, str], str | None] = {}
    names, managers = cluster.namenodes_http, cluster.managers_http
    for master, namenode, manager in zip(cluster.masters, names, managers, strict=True):
        found["namenode", master] = read_role(_ask(cluster, "NameNode", namenode, STATUS))
        found["resourcemanager", master] = read_role(_ask(cluster, "ResourceManager", manager, MANAGER_INFO))
    return found


def active_namenode(cluster: Cluster) -> str:
    """The address (scheme://host:port) of the NameNode that is active; HadoopError when there is none."""
    known = roles(cluster)
    for master, address in zip(cluster.masters, cluster.namenodes_http, strict=True):
        if known["namenode", master] == ACTIVE:
            return address
    raise HadoopError("no NameNode is active", remedy="wait, or look at `nodewise cluster status`")


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


def _find_missing_masters(cluster: Cluster) -> list[str]:
    """Name what has to come until each of two could take over, in words."""
    known = roles(cluster)
    missing = []
    for kind, title in (("namenode", "NameNode"), ("resourcemanager", "ResourceManager")):
        of_kind = sorted(known[kind, master] or "" for master in cluster.masters)
        if of_kind != [ACTIVE, STANDBY]:
            missing.append(f"an active {title} and another")
    return missing or [
        f"NameNode {master}, which does not know all DataNodes"
        for master, address in zip(cluster.masters, cluster.namenodes_http, strict=True)
        if _hosts_of_namenode(cluster, address) != set(cluster.nodes)
    ]
