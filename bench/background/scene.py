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

from bench import distributed_shell, spark
from bench.distributed_shell import first_order, places
from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.stage import Stage, restart, until
from hadoop.local import site
from hadoop.rest.pages import Pages
from infosvc.wire.client import InfoClient

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
CONTAINER_MB = 256
BUSY_NODES = 2


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

    def read_scores() -> list[float]:
        found = {one.node_name: one.number() for one in client.data(VALUE) if one.state == "fresh"}
        speeds = [found.get(node, 0.0) for node in made.cluster.nodes]
        return speeds if min(speeds[BUSY_NODES:]) > FASTER * max(speeds[:BUSY_NODES]) > 0 else []

    speeds: list[float] = until(read_scores, 120, "two nodes are busy and the others idle by what was measured")
    return speeds


def turn(made: Stage, on: bool) -> None:
    """Start the ResourceManager anew, with the plug-in or without."""
    made.cluster = replace(made.cluster, plugin=on)
    site.render(made.cluster)
    restart(made.cluster, "resourcemanager")
    if on:
        until(lambda: first_order(made.cluster).get("StockOrder") is False, 60, "the plug-in has values")


def shell(made: Stage, containers: int, steps: int) -> list[str]:
    """Hadoop's distributed shell; the node of each container that worked."""
    found: dict[str, str] = {}
    command = [sys.executable, str(BURN), str(steps)]
    with distributed_shell.shell(made.cluster, command, containers, CONTAINER_MB, "-timeout", "600000") as client:

        def has_ended() -> bool:
            found.update({one.container: one.node for one in places(made.cluster)})
            return client.poll() is not None

        until(has_ended, 600, "the shell has ended")
    if len(found) < containers:  # it asks for one too many at times
        raise BenchError(f"{len(found)} of {containers} containers were seen")
    return list(found.values())


def spark_job(made: Stage, executors: int, steps: int) -> list[str]:
    """The same work by Spark: one task an executor; the node of each."""
    settings = {"spark": spark.settings(made.cluster, executors), "executors": executors, "steps": steps}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "settings.json"
        file.write_text(json.dumps(settings))
        done = spark.run(made.cluster, spark.SPARK_PYTHON, "bench.background.spark_burn", [str(file)])
    nodes: list[str] = done["nodes"]
    return nodes


APPLICATIONS = {"shell": shell, "spark": spark_job}


def measure_last(made: Stage, nodes: list[str]) -> dict[str, float]:
    """Of the last application: seconds from submission to end, and how many of its containers were on busy nodes."""

    def last() -> dict[str, Any]:
        manager = Pages("ResourceManager", made.cluster.rm_http)
        found: list[dict[str, Any]] = manager.read_json("/ws/v1/cluster/apps", "the applications")["apps"]["app"]
        return max(found, key=lambda one: one["id"])

    until(lambda: last()["finalStatus"] != "UNDEFINED", 60, "the application has ended")
    if last()["finalStatus"] != "SUCCEEDED":
        raise BenchError(f"the application has {last()['finalStatus']}: {last()['diagnostics'][:500]}")
    on_busy = sum(node in made.cluster.nodes[:BUSY_NODES] for node in nodes)
    return {"seconds": last()["elapsedTime"] / 1000, "containers": len(nodes), "on_busy": on_busy}
