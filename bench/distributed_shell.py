"""Hadoop's distributed shell, an application that knows nothing of nodewise, and where YARN has put it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit
from uuid import uuid4

from bench.info.errors import BenchError
from bench.stage import PATIENT, until
from hadoop.local import daemons, ports
from hadoop.local.lifecycle import Cluster
from hadoop.rest.pages import Pages

CLIENT = "org.apache.hadoop.yarn.applications.distributedshell.Client"
MASTER_MB = 256
NAME = "shell-"
SHORT_LIFE = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Halves the CPU of a client that does little."""
RUNNING = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")


class Place(NamedTuple):
    """A container that a NodeManager has now."""

    container: str
    node: str
    state: str

    @property
    def application(self) -> str:
        """The numbers of its application, which its name ends with as well."""
        return "_".join(self.container.split("_")[-4:-2])

    @property
    def is_master(self) -> bool:
        """Whether it is the application master of a first attempt."""
        return self.container.endswith("_000001")


@contextmanager
def shell(
    cluster: Cluster,
    command: Sequence[str],
    containers: int,
    memory_mb: int,
    *more: str,
    java_options: Sequence[str] = SHORT_LIFE,
) -> Iterator[subprocess.Popen[bytes]]:
    """The client of an application that runs a command in so many containers of one core; both end with the block."""
    name = f"{NAME}{uuid4().hex}"
    jar = next(cluster.jars.glob("hadoop-yarn-applications-distributedshell-*.jar"))
    words = {
        "-jar": str(jar),
        "-appname": name,
        "-shell_command": command[0],
        "-shell_args": " ".join(command[1:]),
        "-num_containers": str(containers),
        "-container_memory": str(memory_mb),
        "-container_vcores": "1",
        "-master_memory": str(MASTER_MB),
    }
    java = [str(cluster.java), *java_options, "-cp", f"{cluster.conf_dir}:{cluster.jars}/*"]
    argv = [*java, CLIENT, *chain(*words.items()), *more]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, env=daemons.environment(cluster), stdout=quiet, stderr=quiet) as client:
        try:
            yield client
        finally:
            client.terminate()
            _end(cluster, name)


def places(cluster: Cluster) -> list[Place]:
    """The containers of every node, application masters left out."""
    return [one for one in containers(cluster) if not one.is_master]


def containers(cluster: Cluster) -> list[Place]:
    """The containers of every node."""
    found = []
    for node in cluster.nodes:
        manager = Pages("NodeManager", f"http://{node}:{ports.NODEMANAGER_HTTP}", PATIENT)
        answer = manager.read_json("/ws/v1/node/containers", "the containers")
        rows = (answer["containers"] or {}).get("container", [])
        found += [Place(one["id"], node, one["state"]) for one in rows]
    return found


def running_shells(cluster: Cluster) -> list[str]:
    """The ids of those that have not ended."""
    return _named(cluster, NAME, RUNNING)


def _end(cluster: Cluster, name: str) -> None:
    """Kill what still runs under a name, and wait until its nodes, too, have none of it any more.

    For a heartbeat or more after its end they list its containers as if they ran.
    """
    for application in _named(cluster, name, RUNNING):
        _kill(cluster, application)
    until(lambda: not _named(cluster, name, RUNNING), 180, f"{name} has ended")
    ended = {one.removeprefix("application_") for one in _named(cluster, name)}
    until(
        lambda: not any(one.application in ended for one in containers(cluster)), 180, f"{name} has left all its nodes"
    )


def _kill(cluster: Cluster, application: str) -> None:
    """Ask YARN's pages for its end, which needs no Java."""
    path = f"/ws/v1/cluster/apps/{application}/state?user.name={quote(cluster.user)}"
    with closing(HTTPConnection(urlsplit(cluster.rm_http).netloc, timeout=PATIENT.seconds)) as connection:
        connection.request("PUT", path, '{"state": "KILLED"}', {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status >= 400:
            raise BenchError(f"YARN does not end {application}: {answer.status} {answer.read().decode()}")


def _named(cluster: Cluster, begin: str, states: Sequence[str] = ()) -> list[str]:
    """The ids of the applications in these states, or of all that YARN remembers, whose name begins so."""
    path = f"/ws/v1/cluster/apps?states={','.join(states)}" if states else "/ws/v1/cluster/apps"
    answer = Pages("ResourceManager", cluster.rm_http, PATIENT).read_json(path, "the applications")
    found = (answer["apps"] or {}).get("app", [])
    return [one["id"] for one in found if one["name"].startswith(begin)]


def first_order(cluster: Cluster) -> dict[str, Any]:
    """What the plug-in tells of its first policy by JMX; nothing before it has started."""
    return order_named(cluster, "first")


def order_named(cluster: Cluster, name: str) -> dict[str, Any]:
    """What the plug-in tells of an order by JMX; nothing where there is none."""
    path = f"/jmx?qry=Hadoop:service=ResourceManager,name=NodewiseOrder-{name}"
    answer = Pages("ResourceManager", cluster.rm_http, PATIENT).read_json(path, "the plug-in")
    beans: list[dict[str, Any]] = answer["beans"]
    return beans[0] if beans else {}
