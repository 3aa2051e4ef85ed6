"""Four nodes, two of them busy, and a ResourceManager that has the plug-in or not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import spark
from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.stage import Stage, until
from hadoop import daemons, health, site
from hadoop.daemons import Daemon
from hadoop.direct import open_direct
from infosvc.client import InfoClient

BURN = ROOT / "bench" / "background" / "burn.py"
VALUE = "cpu_speed"
PROBE = ROOT / "bench" / "background" / f"{VALUE}.sh"
"""What nodes are ordered by: a collector that nodewise does not ship."""
POLICY = """
service.url = {url}
first.score = {name} higher 0..{most}
first.herd = 0.2
first.room.memory-mb = 256
"""
FASTER = 2
"""By how much the slowest of the idle nodes is faster than the fastest of the busy ones, once values show it."""
CONTAINER_MB, MASTER_MB = 256, 256
BUSY_NODES = 2
SHELL = "org.apache.hadoop.yarn.applications.distributedshell.Client"


@contextmanager
def busy(cpu: int, programs: int) -> Iterator[None]:
    """As many programs that want all of a CPU."""
    # Linux shares a CPU between sessions first where it groups by them, so each has one of its own.
    started = [subprocess.Popen([sys.executable, str(BURN)], start_new_session=True) for _ in range(programs)]
    try:
        for one in started:
            os.sched_setaffinity(one.pid, {cpu})
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def enrol(made: Stage) -> None:
    """The agent and the collector on every node, and the settings of the plug-in."""
    home, names = made.cluster.home, made.nodewise("cluster", "status", "--names").split()
    scripts = home / "files" / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    shutil.copy(PROBE, scripts)
    made.nodewise("node", "add", "-F", str(home / "cluster" / "ssh" / "config"), *names)
    how = ("--cmd", f"scripts/{PROBE.name}", "--time-max", "10", "--timeout", "30", "--unit", "steps/s")
    made.nodewise("producer", "put", VALUE, *how)
    made.nodewise("slot", "start", VALUE)
    policy = POLICY.format(url=made.url, name=VALUE, most=max(settle(made)))
    (made.cluster.conf_dir / site.POLICY_FILE).write_text(policy)


def settle(made: Stage) -> list[float]:
    """Wait until the values show who is busy, as before any job; the values, in the order of the nodes."""
    client = InfoClient.from_token_file(made.url, made.cluster.home / "service" / "token")

    def shown() -> list[float]:
        found = {one.node_name: one.number() for one in client.data(VALUE) if one.state == "fresh"}
        speeds = [found.get(node, 0.0) for node in made.cluster.nodes]
        return speeds if min(speeds[BUSY_NODES:]) > FASTER * max(speeds[:BUSY_NODES]) > 0 else []

    speeds: list[float] = until(shown, 120, "two nodes are busy and the others idle by what was measured")
    return speeds


def turn(made: Stage, on: bool) -> None:
    """Start the ResourceManager anew, with the plug-in or without."""
    made.cluster = replace(made.cluster, plugin=on)
    manager = Daemon(made.cluster, "resourcemanager")
    process = daemons.running(made.cluster)[manager]
    process.kill()
    process.wait()
    site.render(made.cluster)
    daemons.start(manager)
    nodes = set(made.cluster.nodes)
    until(lambda: health.running_nodemanagers(made.cluster) == nodes, 120, "all nodes have come back")
    if on:
        until(lambda: _orders(made), 60, "the plug-in has values")


def _orders(made: Stage) -> bool:
    url = f"{made.cluster.rm_http}/jmx?qry=Hadoop:service=ResourceManager,name=NodewiseOrder-first"
    with open_direct(url, 5) as answer:
        beans: list[dict[str, Any]] = json.load(answer)["beans"]
    return bool(beans) and not beans[0]["StockOrder"]


def shell(made: Stage, containers: int, steps: int) -> dict[str, float]:
    """Hadoop's distributed shell: seconds from submission to end, and how many containers ran on busy nodes."""
    cluster = made.cluster
    jar = next(cluster.jars.glob("hadoop-yarn-applications-distributedshell-*.jar"))
    argv = [str(cluster.java), "-cp", f"{cluster.conf_dir}:{cluster.jars}/*", SHELL, "-jar", str(jar)]
    argv += ["-shell_command", f"{sys.executable} {BURN}", "-shell_args", str(steps)]
    argv += ["-num_containers", str(containers), "-container_memory", str(CONTAINER_MB), "-container_vcores", "1"]
    argv += ["-master_memory", str(MASTER_MB), "-timeout", "600000"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, env=daemons.environment(cluster), stdout=quiet, stderr=quiet) as client:
        found: dict[str, str] = {}
        try:
            until(lambda: found.update(_containers(made)) or client.poll() is not None, 600, "the shell has ended")
        finally:
            client.kill()
    if len(found) < containers:  # the distributed shell asks for one too many at times
        raise BenchError(f"{len(found)} of {containers} containers were seen")
    return _measured(made, list(found.values()))


def spark_job(made: Stage, executors: int, steps: int) -> dict[str, float]:
    """The same work by Spark: one task an executor."""
    settings = {"spark": spark.settings(made.cluster, executors), "executors": executors, "steps": steps}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "settings.json"
        file.write_text(json.dumps(settings))
        found = spark.run(made.cluster, spark.SPARK_PYTHON, "bench.background.spark_burn", [str(file)])
    return _measured(made, found["nodes"])


APPLICATIONS = {"shell": shell, "spark": spark_job}


def _containers(made: Stage) -> dict[str, str]:
    """Containers that work now, with their nodes; the application master's is not one."""
    found: dict[str, str] = {}
    for node in made.cluster.nodes:
        with open_direct(f"http://{node}:8042/ws/v1/node/containers", 5) as answer:
            containers = (json.load(answer)["containers"] or {}).get("container", [])
        found |= {one["id"]: node for one in containers if not one["id"].endswith("_000001")}
    return found


def _measured(made: Stage, nodes: list[str]) -> dict[str, float]:
    def last() -> dict[str, Any]:
        with open_direct(f"{made.cluster.rm_http}/ws/v1/cluster/apps", 5) as answer:
            found: list[dict[str, Any]] = json.load(answer)["apps"]["app"]
        return max(found, key=lambda one: one["id"])

    until(lambda: last()["finalStatus"] != "UNDEFINED", 60, "the application has ended")
    if last()["finalStatus"] != "SUCCEEDED":
        raise BenchError(f"the application has {last()['finalStatus']}: {last()['diagnostics'][:500]}")
    on_busy = sum(node in made.cluster.nodes[:BUSY_NODES] for node in nodes)
    return {"seconds": last()["elapsedTime"] / 1000, "containers": len(nodes), "on_busy": on_busy}
