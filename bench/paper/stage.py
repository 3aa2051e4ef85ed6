"""The lab as the paper's experiment uses it: limited and busy machines, with stock placement."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.info.errors import BenchError
from bench.lab import CALM_SECONDS, MASTER, RESOURCEMANAGER_PORT, UP, USER, WORKERS, Machines, find_machines
from bench.paper.control import Control
from bench.stage import until

FOLDER = "/bench/paper"
PICTURES, CODE, SLICE, OUTPUT = f"{FOLDER}/pictures", f"{FOLDER}/code.zip", f"{FOLDER}/slice.py", f"{FOLDER}/out"
SINGLE = f"{FOLDER}/pictures-once"
"""The same pictures with one replica each, of which some have to move to wherever they are done soonest."""
CONF = "/etc/hadoop"
WORKER_PYTHON = "/opt/nodewise/worker/bin/python"
FROM_HDFS = (WORKER_PYTHON, "-c", "import hdfs_native, sys; exec(hdfs_native.Client().read(sys.argv.pop(1)).read())")
"""Runs a script that lies in HDFS, so that none has to be brought to the machines."""
LOAD = "bench-load"
CONTAINER_MB, MASTER_MB = 1536, 640
"""What every method asks for each of its workers; the most that an application master takes beside one."""
SCHEDULER, PLACEMENT = f"{CONF}/capacity-scheduler.xml", "yarn.scheduler.capacity.multi-node-placement-enabled"
MEMORY = "memory_total_bytes"


@dataclass
class Stage(Machines):
    """The lab, and what runs on this machine to speak to it."""

    control: Control

    def load(self, name: str, percent: int) -> None:
        """Keep a machine busy: so much of one CPU is asked for, in a unit of its own; 0 ends it."""
        with suppress(BenchError):  # there is none yet
            self.run(name, "sudo", "systemctl", "stop", f"{LOAD}.service")
        if not percent:
            return
        # One process up to a whole CPU, two above, each with its part.
        parts = 1 + (percent > 100)
        busy = ("--cpu", str(parts), "--cpu-load", str(round(percent / parts)), "--cpu-method", "matrixprod")
        self.run(name, "sudo", "systemd-run", f"--unit={LOAD}", "--collect", "/usr/bin/stress-ng", *busy)

    def clear(self) -> None:
        """End what still runs, and wait until the cluster rests and is whole."""
        for one in self.applications():
            self.run(MASTER, "sudo", "-u", one["user"], "/usr/local/bin/yarn", "application", "-kill", one["id"])
        until(lambda: not self.applications() and self.whole(), CALM_SECONDS, "the cluster rests and is whole")

    def places_by_values(self) -> bool:
        """Whether the ResourceManager has nodes ordered by the plug-in."""
        return f"<name>{PLACEMENT}</name><value>true<" in self.run(MASTER, "sudo", "cat", SCHEDULER)

    def place_by_values(self, on: bool) -> None:
        """Let the ResourceManager order nodes by the plug-in, or as stock does; it is started anew."""
        edit = f"s|(<name>{PLACEMENT}</name><value>)[a-z]+|\\1{'true' if on else 'false'}|"
        self.run(MASTER, "sudo", "sed", "-E", "-i", edit, SCHEDULER)
        self.run(MASTER, "sudo", "systemctl", "restart", "hadoop-resourcemanager")
        until(self.whole, CALM_SECONDS, "all nodes have come back to the ResourceManager")


@contextmanager
def stage(cpus: float) -> Iterator[Stage]:
    """The lab with stock placement and a limit for its workers, as it was again afterwards."""
    found = find_machines()
    with tempfile.TemporaryDirectory(prefix="bench-paper-") as directory:
        control = Control(Path(directory), found.addresses, USER)
        made = Stage(found.lab, found.addresses, control)
        check(made)
        for name in ("core-site.xml", "hdfs-site.xml", "yarn-site.xml"):
            made.control.add_site(name, made.run(MASTER, "cat", f"{CONF}/{name}"))
        plugged = made.places_by_values()
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the lab is put back
        try:
            for name in WORKERS:
                made.limit(name, cpus)
            if plugged:
                made.place_by_values(False)
            yield made
        finally:
            _restore(made, plugged)
            signal.signal(signal.SIGTERM, before)


def check(made: Stage) -> None:
    """BenchError unless the four workers are there, with room for a worker and a master, and agents that see them."""
    nodes = (made.page(MASTER, RESOURCEMANAGER_PORT, "/ws/v1/cluster/nodes?states=RUNNING")["nodes"] or {}).get(
        "node", []
    )
    names = sorted(one["nodeHostName"] for one in nodes)
    if names != sorted(WORKERS):
        raise BenchError(f"YARN has the nodes {', '.join(names) or 'none'}, not {', '.join(WORKERS)}: {UP}")
    for one in nodes:
        memory = one["availMemoryMB"] + one["usedMemoryMB"]
        cores = one["availableVirtualCores"] + one["usedVirtualCores"]
        if memory < CONTAINER_MB + MASTER_MB or cores < 2:
            raise BenchError(
                f"{one['nodeHostName']} gives YARN {memory} MB and {cores} cores: a worker and an application master "
                f"need {CONTAINER_MB + MASTER_MB} MB and 2, set hadoop_node_memory_mb and hadoop_node_vcores of the lab"
            )
    _check_agents(made)


def _check_agents(made: Machines) -> None:
    """BenchError where an agent sees another memory than its machine has: then its values are those of the host."""
    told = json.loads(made.nodewise("data", "get", MEMORY, "--json"))
    seen = {one["node_name"]: float(one["data_value"] or 0) for one in told}
    own = made.everywhere(lambda name: _memory_bytes(made.run(name, "cat", "/proc/meminfo")))
    wrong = [name for name in WORKERS if seen.get(name) != own[name]]
    if wrong:
        raise BenchError(
            f"the agents of {', '.join(wrong)} do not tell the memory of their own machines, so other values are the "
            "host's, too: run `grep lxcfs /proc/PID/mounts` there for the agent's PID"
        )


def _memory_bytes(meminfo: str) -> int:
    """All the memory of a machine, by its /proc/meminfo.

    >>> _memory_bytes("MemTotal:        3072000 kB\\nMemFree: 1 kB\\n")
    3145728000
    """
    return 1024 * int(meminfo.split("MemTotal:", 1)[1].split(maxsplit=1)[0])


def install(made: Stage) -> None:
    """stress-ng on every worker, from the source of packages that the machine has."""

    def add(name: str) -> None:
        with suppress(BenchError):
            made.run(name, "test", "-x", "/usr/bin/stress-ng")
            return
        quiet = ("sudo", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get")
        made.run(name, *quiet, "update", "-q", timeout=300)
        made.run(name, *quiet, "install", "-y", "-q", "--no-install-recommends", "stress-ng", timeout=600)

    made.everywhere(add)


def _restore(made: Stage, plugged: bool) -> None:
    """End the load, and put back what was changed; what cannot be is told, as the cause may be above."""
    steps: Sequence[Callable[[], Any]] = (
        *(partial(made.load, name, 0) for name in WORKERS),
        *([partial(made.place_by_values, True)] if plugged else []),
        made.lab.limits,
    )
    for step in steps:
        try:
            step()
        except (BenchError, made.lab.LabError) as error:
            print(f"The lab is not as it was ({error}): {UP}", file=sys.stderr)
