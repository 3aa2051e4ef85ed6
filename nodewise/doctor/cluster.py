"""Checks the Hadoop that jobs would use: its NameNode, its ResourceManager, and their version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hadoop.errors import HadoopError
from hadoop.rest import namenode, resourcemanager, site_files
from hadoop.rest.addresses import namenode_addresses, resourcemanager_addresses
from hadoop.rest.namenode import NameNodeInfo
from hadoop.rest.pages import Limits, NoAnswer
from hadoop.rest.resourcemanager import ResourceManagerInfo
from nodewise.doctor.clock import offset
from nodewise.doctor.finding import PATIENCE_SECONDS, Finding, Problem, fail, ok, skip, warn

LIMITS = Limits(connect=PATIENCE_SECONDS, silence=PATIENCE_SECONDS)
_ORDER = "yarn.scheduler.capacity.multi-node-sorting.policy"
_OURS = "nodewise."
_UP = "start one with `nodewise cluster up`, or name the site files of yours with --hadoop-conf (HADOOP_CONF_DIR)"


@dataclass(frozen=True)
class NameNode:
    """What a NameNode says of itself; `clock` is how many seconds its clock is ahead of ours, if it tells the time."""

    info: NameNodeInfo
    clock: float | None = None

    @property
    def version(self) -> str:
        """Its version of Hadoop."""
        return self.info.version


@dataclass(frozen=True)
class ResourceManager:
    """What a ResourceManager says of itself, the class that orders its nodes, and its clock."""

    info: ResourceManagerInfo
    order: str = ""
    clock: float | None = None

    @property
    def version(self) -> str:
        """Its version of Hadoop."""
        return self.info.version


def read_hdfs(conf_dir: Path) -> NameNode:
    """Ask the NameNode; HadoopError when there are no site files, or no answer."""
    with _remedy_of("hadoop-namenode"):
        info, answer = namenode.NameNode(namenode_addresses(conf_dir), LIMITS).read_info()
    return NameNode(info, offset(answer.headers["Date"]))


def hdfs(found: NameNode | Problem, absent: Finding | None) -> Finding:
    """Whether HDFS accepts files and has lost no block; `absent` is the finding when there is no cluster to ask."""
    name = "hdfs"
    if isinstance(found, Problem):
        return absent or found.as_finding(name)
    info = found.info
    nodes = f"live DataNodes: {info.live}"
    if info.safemode:
        remedy = "wait a minute; if it stays, see why with `hdfs dfsadmin -safemode get` and the NameNode's log"
        return fail(name, f"{info.address} is in safe mode: {info.safemode}", remedy)
    if not info.live:
        remedy = "start them (`nodewise cluster up`, or systemd's units)"
        return fail(name, f"{info.address} has no live DataNode", remedy)
    if info.missing_blocks:
        remedy = "see which with `hdfs fsck / -list-corruptfileblocks`, and bring back the DataNodes that have them"
        return fail(name, f"missing blocks: {info.missing_blocks}; {nodes}", remedy)
    if info.dead:
        remedy = "see which with `hdfs dfsadmin -report -dead`, and start them again"
        return warn(name, f"{nodes}, dead ones: {info.dead}", remedy)
    return ok(name, f"{nodes} ({info.address})")


def read_yarn(conf_dir: Path) -> ResourceManager:
    """Ask the ResourceManager; HadoopError when there are no site files, or no answer."""
    with _remedy_of("hadoop-resourcemanager"):
        manager = resourcemanager.ResourceManager(resourcemanager_addresses(conf_dir), limits=LIMITS)
        info, answer = manager.read_info()
    return ResourceManager(info, read_order(conf_dir), offset(answer.headers["Date"]))


def read_order(conf_dir: Path) -> str:
    """The class by which YARN orders nodes; empty when its own scheduler does that."""
    site = conf_dir / "capacity-scheduler.xml"
    with suppress(HadoopError):
        return site_files.value(site, f"{_ORDER}.{site_files.value(site, _ORDER)}.class")
    return ""


def yarn(found: ResourceManager | Problem, absent: Finding | None) -> Finding:
    """Whether YARN would run containers, and what orders its nodes."""
    name = "yarn"
    if isinstance(found, Problem):
        return absent or found.as_finding(name)
    ordered = "the plug-in orders them" if found.order.startswith(_OURS) else "stock order"
    running = found.info.states.get("RUNNING", 0)
    others = {state: count for state, count in sorted(found.info.states.items()) if state != "RUNNING"}
    if not running:
        remedy = "start NodeManagers (`nodewise cluster up`, or systemd's units), and read their logs if they end again"
        return fail(name, f"{found.info.address} has no RUNNING node{_join_states(others)}", remedy)
    if others:
        remedy = "see which and why with `yarn node -list -all`, and start what is gone"
        return warn(name, f"RUNNING nodes: {running}{_join_states(others)}; {ordered}", remedy)
    return ok(name, f"RUNNING nodes: {running}; {ordered} ({found.info.address})")


def hadoop_version(ours: str | None, servers: dict[str, str]) -> Finding:
    """Whether the jars that clients use are of the servers' version; `servers` are those that answered."""
    name = "hadoop version"
    if ours is None or not servers:
        return skip(name, "not compared, as no server answered" if ours else "not compared, as there are no jars")
    others = {server: version for server, version in servers.items() if version != ours}
    if others:
        said = ", ".join(f"{server} {version}" for server, version in others.items())
        return warn(
            name, f"the jars here are {ours}, {said}", "name jars of the same version with --jars (NODEWISE_JARS)"
        )
    return ok(name, f"{ours} here and there")


def explain_absence(name: str, given: bool, recorded: bool | None, stopped: bool) -> Finding | None:
    """Why a cluster that nobody named does not answer: it was never started, or was stopped. None when it failed.

    `recorded` tells whether the home has a cluster, None when that could not be found out.
    """
    if given or recorded is None:
        return None
    if not recorded:
        return skip(name, "no cluster was started yet", _UP)
    return warn(name, "the cluster is stopped", "start it with `nodewise cluster up`") if stopped else None


@contextmanager
def _remedy_of(unit: str) -> Iterator[None]:
    """Add to the error of a daemon that does not answer what would start it."""
    try:
        yield
    except NoAnswer as error:
        raise HadoopError(
            error.message,
            remedy=f"see its log, and start it with `nodewise cluster up` or `systemctl start {unit}`",
        ) from None


def _join_states(states: dict[str, int]) -> str:
    return "".join(f", {state}: {count}" for state, count in states.items())
