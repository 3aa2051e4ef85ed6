"""Reads everything side by side, then makes the findings in the order in which they are shown."""

from __future__ import annotations

import sys
from time import monotonic

from infosvc.wire.records import Node
from infosvc.wire.service_options import service_timeout
from nodewise.doctor import agents, cluster, local_cluster, machine, service
from nodewise.doctor.clock import clock
from nodewise.doctor.cluster import NameNode, ResourceManager
from nodewise.doctor.finding import PATIENCE_SECONDS, Finding, Problem, Reading
from nodewise.doctor.local_cluster import LocalCluster
from nodewise.doctor.request import Request
from nodewise.doctor.service import Service

LONGEST_SECONDS = 20.0
"""After which nothing is waited for; each single answer has less. It is more where the service is given longer."""
SERVICE_ANSWERS = 2
"""Of the service, one after the other."""
LONGEST_LOGINS_SECONDS = 60.0


def look(request: Request) -> list[Finding]:
    """Make every finding, in the order of the report; this takes as long as the slowest answer."""
    longer = max(0.0, service_timeout(PATIENCE_SECONDS) - PATIENCE_SECONDS)
    deadline = monotonic() + LONGEST_SECONDS + SERVICE_ANSWERS * longer
    service_read = Reading(lambda: service.read_service(request))
    hdfs_read = Reading(lambda: cluster.read_hdfs(request.conf_dir))
    yarn_read = Reading(lambda: cluster.read_yarn(request.conf_dir))
    local_read = Reading(lambda: local_cluster.read_local_cluster(request.home))
    jars_read = Reading(lambda: machine.read_jars(request.jars))
    here = _this_machine(request, jars_read, deadline)
    local, jars = local_read.result(deadline), jars_read.result(deadline)
    hdfs, yarn = hdfs_read.result(deadline), yarn_read.result(deadline)
    found = service_read.result(deadline)
    return [
        *here,
        local_cluster.cluster_ports(local, request.hadoop_conf is not None),
        *_hadoop(request, local, hdfs, yarn),
        cluster.hadoop_version(_only_version(jars), _versions(hdfs, yarn)),
        *_service(request, found, deadline),
        *_nodes(request, None if isinstance(found, Problem) else found.nodes, deadline),
        clock(_clocks(found, hdfs, yarn)),
    ]


def _this_machine(request: Request, jars: Reading[machine.Jars], deadline: float) -> list[Finding]:
    worker = Reading(lambda: machine.read_worker(request.worker_python))
    java, disk = Reading(machine.read_java), Reading(lambda: machine.read_disk(request.home))
    elsewhere = request.hadoop_conf is not None
    return [
        machine.python(sys.version_info[:2], machine.read_release()),
        machine.worker_python(request.worker_python, worker.result(deadline), elsewhere),
        machine.java(java.result(deadline)),
        machine.jars(jars.result(deadline)),
        machine.disk(disk.result(deadline)),
    ]


def _hadoop(
    request: Request, local: LocalCluster | Problem, hdfs: NameNode | Problem, yarn: ResourceManager | Problem
) -> list[Finding]:
    recorded, stopped = (None, False) if isinstance(local, Problem) else (local.daemons > 0, local.is_stopped)
    given = request.hadoop_conf is not None
    return [
        cluster.hdfs(hdfs, cluster.explain_absence("hdfs", given, recorded, stopped)),
        cluster.yarn(yarn, cluster.explain_absence("yarn", given, recorded, stopped)),
    ]


def _service(request: Request, found: Service | Problem, deadline: float) -> list[Finding]:
    port = Reading(lambda: service.read_port(request.url))
    file = Reading(lambda: service.read_token_file(request.home, request.token_file))
    absent = service.explain_absence(request.url_given, (request.home / "service").exists())
    return [
        service.service_port(request.url, port.result(deadline), found),
        service.service(found, absent),
        service.token(found),
        service.token_file(file.result(deadline)),
    ]


def _nodes(request: Request, nodes: tuple[Node, ...] | None, deadline: float) -> list[Finding]:
    ours = Reading(lambda: agents.read_version(request.home, request.files)) if nodes else None
    options = request.ssh
    logins = None if options is None else Reading(lambda: agents.read_logins(nodes or (), options))
    return [
        agents.agents(nodes),
        agents.agent_versions(nodes, ours.result(deadline) if ours else ""),
        agents.ssh(logins.result(monotonic() + LONGEST_LOGINS_SECONDS) if logins else None),
    ]


def _only_version(jars: machine.Jars | Problem) -> str | None:
    return jars.versions[0] if not isinstance(jars, Problem) and len(jars.versions) == 1 else None


def _versions(hdfs: NameNode | Problem, yarn: ResourceManager | Problem) -> dict[str, str]:
    found = {"NameNode": hdfs, "ResourceManager": yarn}
    return {who: server.version for who, server in found.items() if not isinstance(server, Problem)}


def _clocks(found: Service | Problem, hdfs: NameNode | Problem, yarn: ResourceManager | Problem) -> dict[str, float]:
    servers = {"information service": found, "NameNode": hdfs, "ResourceManager": yarn}
    offsets = {who: server.clock for who, server in servers.items() if not isinstance(server, Problem)}
    return {who: seconds for who, seconds in offsets.items() if seconds is not None}
