"""The Hadoop that jobs would use: its NameNode, its ResourceManager, their version."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from hadoop.errors import HadoopError
from hadoop.rest import site_files
from hadoop.rest.direct import open_direct
from nodewise.doctor.clock import offset
from nodewise.doctor.finding import PATIENCE_SECONDS, Finding, Problem, fail, ok, skipped, warn

_ORDER = "yarn.scheduler.capacity.multi-node-sorting.policy"
_OURS = "nodewise."
_UP = "start one with `nodewise cluster up`, or name the site files of yours with --hadoop-conf (HADOOP_CONF_DIR)"


@dataclass(frozen=True)
class NameNode:
    """What a NameNode says of itself; `safemode` is its own sentence, empty when it is not in safe mode."""

    url: str
    version: str
    safemode: str
    live: int
    dead: int
    missing_blocks: int
    clock: float | None = None


@dataclass(frozen=True)
class ResourceManager:
    """What a ResourceManager says of itself: how many nodes are in which state, and the class that orders them."""

    url: str
    version: str
    states: dict[str, int]
    order: str = ""
    clock: float | None = None


def read_hdfs(conf_dir: Path) -> NameNode:
    """Ask the NameNode; HadoopError when there are no site files, or no answer."""
    url = site_files.namenode_http(conf_dir)
    said, clock = _ask(f"{url}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo", "NameNode")
    return parse_namenode(url, said, clock)


def parse_namenode(url: str, said: Any, clock: float | None = None) -> NameNode:
    """Read NameNodeInfo, whose LiveNodes and DeadNodes are JSON in a string; HadoopError when it is something else."""
    try:
        bean = said["beans"][0]
        live, dead = (len(json.loads(bean[key])) for key in ("LiveNodes", "DeadNodes"))
        version = str(bean["SoftwareVersion"])
        return NameNode(url, version, str(bean["Safemode"]), live, dead, int(bean["NumberOfMissingBlocks"]), clock)
    except (KeyError, IndexError, TypeError, ValueError):
        raise HadoopError(
            f"{url} answers, but not as a NameNode that has started: wait, or read its log and correct "
            "dfs.namenode.http-address in hdfs-site.xml"
        ) from None


def hdfs(found: NameNode | Problem, absent: Finding | None) -> Finding:
    """Whether HDFS takes files and has all it ever took; `absent` when there is no cluster to ask."""
    name = "hdfs"
    if isinstance(found, Problem):
        return absent or found.failed(name)
    nodes = f"live DataNodes: {found.live}"
    if found.safemode:
        remedy = "wait a minute; if it stays, see why with `hdfs dfsadmin -safemode get` and the NameNode's log"
        return fail(name, f"{found.url} is in safe mode: {found.safemode}", remedy)
    if not found.live:
        return fail(name, f"{found.url} has no live DataNode", "start them (`nodewise cluster up`, or systemd's units)")
    if found.missing_blocks:
        remedy = "see which with `hdfs fsck / -list-corruptfileblocks`, and bring back the DataNodes that have them"
        return fail(name, f"missing blocks: {found.missing_blocks}; {nodes}", remedy)
    if found.dead:
        remedy = "see which with `hdfs dfsadmin -report -dead`, and start them again"
        return warn(name, f"{nodes}, dead ones: {found.dead}", remedy)
    return ok(name, f"{nodes} ({found.url})")


def read_yarn(conf_dir: Path) -> ResourceManager:
    """Ask the ResourceManager; HadoopError when there are no site files, or no answer."""
    url = site_files.resourcemanager_http(conf_dir)
    about, clock = _ask(f"{url}/ws/v1/cluster/info", "ResourceManager")
    nodes, _ = _ask(f"{url}/ws/v1/cluster/nodes", "ResourceManager")
    return parse_resourcemanager(url, about, nodes, read_order(conf_dir), clock)


def parse_resourcemanager(
    url: str, about: Any, nodes: Any, order: str = "", clock: float | None = None
) -> ResourceManager:
    """Read /cluster/info and /cluster/nodes, whose `nodes` is null for none; HadoopError when it is something else."""
    try:
        version = str(about["clusterInfo"]["hadoopVersion"])
        states = Counter(str(node["state"]) for node in (nodes["nodes"] or {}).get("node", []))
        return ResourceManager(url, version, dict(states), order, clock)
    except (KeyError, TypeError, AttributeError):
        raise HadoopError(
            f"{url} answers, but not as a ResourceManager: correct yarn.resourcemanager.hostname in yarn-site.xml"
        ) from None


def read_order(conf_dir: Path) -> str:
    """The class by which YARN orders nodes, empty when its own scheduler does as usual."""
    site = conf_dir / "capacity-scheduler.xml"
    with suppress(HadoopError):
        return site_files.value(site, f"{_ORDER}.{site_files.value(site, _ORDER)}.class")
    return ""


def yarn(found: ResourceManager | Problem, absent: Finding | None) -> Finding:
    """Whether YARN would run containers, and in whose order it takes the nodes."""
    name = "yarn"
    if isinstance(found, Problem):
        return absent or found.failed(name)
    ordered = "the plug-in orders them" if found.order.startswith(_OURS) else "stock order"
    running = found.states.get("RUNNING", 0)
    others = {state: count for state, count in sorted(found.states.items()) if state != "RUNNING"}
    if not running:
        remedy = "start NodeManagers (`nodewise cluster up`, or systemd's units), and read their logs if they end again"
        return fail(name, f"{found.url} has no RUNNING node{_listed(others)}", remedy)
    if others:
        remedy = "see which and why with `yarn node -list -all`, and start what is gone"
        return warn(name, f"RUNNING nodes: {running}{_listed(others)}; {ordered}", remedy)
    return ok(name, f"RUNNING nodes: {running}; {ordered} ({found.url})")


def hadoop_version(ours: str | None, servers: dict[str, str]) -> Finding:
    """Whether the jars that clients use are of the servers' version; `servers` are those that answered."""
    name = "hadoop version"
    if ours is None or not servers:
        return skipped(name, "not compared, as no server answered" if ours else "not compared, as there are no jars")
    others = {server: version for server, version in servers.items() if version != ours}
    if others:
        said = ", ".join(f"{server} {version}" for server, version in others.items())
        return warn(
            name, f"the jars here are {ours}, {said}", "name jars of the same version with --jars (NODEWISE_JARS)"
        )
    return ok(name, f"{ours} here and there")


def absent(name: str, given: bool, recorded: bool | None, stopped: bool) -> Finding | None:
    """What no answer means when nobody named a cluster: none was started yet, or it was stopped. None: a failure.

    `recorded` tells whether the home has a cluster, None when that could not be found out.
    """
    if given or recorded is None:
        return None
    if not recorded:
        return skipped(name, "no cluster was started yet", _UP)
    return warn(name, "the cluster is stopped", "start it with `nodewise cluster up`") if stopped else None


def _ask(url: str, who: str) -> tuple[Any, float | None]:
    """The JSON at a URL, and how far its server's clock is ahead of ours."""
    try:
        with open_direct(url, PATIENCE_SECONDS) as answer:
            clock = offset(answer.headers.get("Date"))
            return json.load(answer), clock
    except (OSError, HTTPException, ValueError) as error:
        why = getattr(error, "reason", error)  # urllib wraps it once more
        address, unit = "/".join(url.split("/")[:3]), f"hadoop-{who.lower()}"
        raise HadoopError(
            f"the {who} at {address} does not answer ({why}): see its log, and start it with `nodewise cluster up` "
            f"or `systemctl start {unit}`"
        ) from None


def _listed(states: dict[str, int]) -> str:
    return "".join(f", {state}: {count}" for state, count in states.items())
