"""Which of two NameNodes or ResourceManagers of a local cluster is active."""

from __future__ import annotations

from bench.stage import START_SECONDS, until
from hadoop.local import health
from hadoop.local.daemons import Daemon
from hadoop.local.lifecycle import Cluster
from hadoop.rest.masters import ACTIVE, STANDBY

KINDS = ("namenode", "resourcemanager")
ONE_OF_EACH = sorted((ACTIVE, STANDBY))


def find_active(cluster: Cluster, kind: str) -> Daemon | None:
    """The one of a kind that is active, None while there is no such one."""
    known = health.roles(cluster)
    active = next((master for master in cluster.masters if known[kind, master] == ACTIVE), None)
    if active is None:
        return None
    return Daemon(cluster, kind, None if active == cluster.master else active)


def await_both(cluster: Cluster, kind: str) -> None:
    """Wait until one of a kind is active and the other could take over; BenchError when that does not come."""

    def are_ready() -> bool:
        known = health.roles(cluster)
        return sorted(known[kind, master] or "" for master in cluster.masters) == ONE_OF_EACH

    until(are_ready, START_SECONDS, f"one {kind} is active and another stands by")
