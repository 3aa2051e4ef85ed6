"""The cluster of `nodewise cluster up` on this machine: does it run, and are its ports free or its own?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hadoop.client.jars import JARS
from hadoop.local import daemons, ports, state
from hadoop.local.lifecycle import DEFAULT_NODES
from hadoop.local.state import Cluster
from nodewise.doctor.finding import Finding, Problem, ok, problem, skipped, warn


@dataclass(frozen=True)
class LocalCluster:
    """What is recorded under a home: `daemons` 0 when no cluster was ever started there.

    `running` of them do. `taken` says which port that the others need is held by somebody else.
    """

    subnet: str
    daemons: int = 0
    running: int = 0
    taken: Problem | None = None

    @property
    def stopped(self) -> bool:
        """Whether there is a cluster, of which nothing runs."""
        return self.daemons > 0 and self.running == 0


def read_local_cluster(home: Path) -> LocalCluster:
    """Look for the daemons of a home's cluster, and at the ports of those that are missing; HadoopError if damaged."""
    recorded = state.read(home)
    if recorded is None:
        return _planned(Cluster(home, "", DEFAULT_NODES, "", JARS, Path()))
    wanted, alive = daemons.of(recorded), daemons.running(recorded)
    busy = ports.first_taken(address for daemon in wanted if daemon not in alive for address in daemon.addresses)
    return LocalCluster(recorded.subnet, len(wanted), len(alive), problem(ports.taken(busy)) if busy else None)


def cluster_ports(found: LocalCluster | Problem, elsewhere: bool) -> Finding:
    """Whether a local cluster has its ports, or would get them; `elsewhere` when another cluster is used."""
    name = "cluster ports"
    if elsewhere:
        return skipped(name, "the cluster in use is not one of this home")
    if isinstance(found, Problem):
        return found.failed(name)
    if found.taken is not None:
        return found.taken.failed(name)
    if found.daemons == 0:
        return ok(name, f"free for a cluster on {found.subnet}.*")
    if 0 < found.running < found.daemons:
        missing = f"{found.daemons - found.running} of {found.daemons} daemons on {found.subnet}.* do not run"
        return warn(name, missing, "`nodewise cluster up` starts what is missing, `nodewise cluster status` names it")
    held = "free for" if found.stopped else "held by"
    return ok(name, f"{held} the {found.daemons} daemons of the cluster on {found.subnet}.*")


def _planned(cluster: Cluster) -> LocalCluster:
    """Look for the subnet that a new cluster would get; as `cluster up` does, it is the first free one."""
    busy = None
    for subnet in ports.SUBNETS:
        placed = replace(cluster, subnet=subnet)
        busy = ports.first_taken(address for daemon in daemons.of(placed) for address in daemon.addresses)
        if busy is None:
            return LocalCluster(subnet)
    return LocalCluster("127.0", taken=problem(ports.taken(busy)) if busy else None)
