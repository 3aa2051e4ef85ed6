"""Checks the cluster of `nodewise cluster up`: whether it runs, and whether its ports are free or its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hadoop.client.jars import JARS
from hadoop.local import daemons, ports, state
from hadoop.local.planning import DEFAULT_NODES
from hadoop.local.state import Cluster
from nodewise.doctor.finding import Finding, Problem, ok, problem, skip, warn


@dataclass(frozen=True)
class LocalCluster:
    """The cluster that is recorded under a home; `daemons` is 0 when none was ever started there.

    `running` is how many daemons run; `taken` names a port that the others need and another program holds.
    """

    subnet: str
    daemons: int = 0
    running: int = 0
    taken: Problem | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether there is a cluster and none of its daemons runs."""
        return self.daemons > 0 and self.running == 0


def read_local_cluster(home: Path) -> LocalCluster:
    """Look for the daemons of a home's cluster, and at the ports of those that are missing; HadoopError if damaged."""
    recorded = state.read(home)
    if recorded is None:
        return _plan_subnet(Cluster(home, "", DEFAULT_NODES, "", JARS, Path()))
    wanted, alive = daemons.of(recorded), daemons.find_running(recorded)
    busy = ports.find_taken(address for daemon in wanted if daemon not in alive for address in daemon.addresses)
    return LocalCluster(recorded.subnet, len(wanted), len(alive), problem(ports.in_use_error(busy)) if busy else None)


def cluster_ports(found: LocalCluster | Problem, elsewhere: bool) -> Finding:
    """Whether a local cluster has its ports, or would get them; `elsewhere` when another cluster is used."""
    name = "cluster ports"
    if elsewhere:
        return skip(name, "the cluster in use is not one of this home")
    if isinstance(found, Problem):
        return found.as_finding(name)
    if found.taken is not None:
        return found.taken.as_finding(name)
    if found.daemons == 0:
        return ok(name, f"free for a cluster on {found.subnet}.*")
    if 0 < found.running < found.daemons:
        missing = f"{found.daemons - found.running} of {found.daemons} daemons on {found.subnet}.* do not run"
        return warn(name, missing, "`nodewise cluster up` starts what is missing, `nodewise cluster status` names it")
    held = "free for" if found.is_stopped else "held by"
    return ok(name, f"{held} the {found.daemons} daemons of the cluster on {found.subnet}.*")


def _plan_subnet(cluster: Cluster) -> LocalCluster:
    """Look for the subnet that a new cluster would get; as `cluster up` does, it is the first free one."""
    busy = None
    for subnet in ports.SUBNETS:
        placed = replace(cluster, subnet=subnet)
        busy = ports.find_taken(address for daemon in daemons.of(placed) for address in daemon.addresses)
        if busy is None:
            return LocalCluster(subnet)
    return LocalCluster("127.0", taken=problem(ports.in_use_error(busy)) if busy else None)
