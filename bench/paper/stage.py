"""The lab as the bench uses it: nothing else of the bench knows how its machines are reached."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.paper.control import Control
from bench.stage import until
from hadoop.errors import HadoopError
from hadoop.rest.default_ports import DEFAULT_PORTS
from hadoop.rest.pages import Limits, Pages

NAMENODE_PORT = DEFAULT_PORTS["dfs.namenode.http-address"]
RESOURCEMANAGER_PORT = DEFAULT_PORTS["yarn.resourcemanager.webapp.address"]
T = TypeVar("T")

MASTER, WORKERS = "master", ("worker1", "worker2", "worker3", "worker4")
USER, SUPERUSER = "nodewise", "hdfs"
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
UP = "run scripts/lab up"
REPLICAS = ("MissingBlocks", "UnderReplicatedBlocks", "PendingReplicationBlocks", "PendingDeletionBlocks")
"""Of which there are none in an HDFS that is whole and has nothing left to move."""
CALM_SECONDS, RETURN_SECONDS = 180.0, 600.0


def lab() -> Any:
    """The package that carries the lab; BenchError when this checkout has none."""
    if str(ROOT / "ansible") not in sys.path:
        sys.path.insert(0, str(ROOT / "ansible"))
    try:
        return import_module("lab")
    except ModuleNotFoundError as error:
        raise BenchError(
            f"{ROOT / 'ansible' / 'lab'} cannot be imported ({error}): is this a whole checkout?"
        ) from None


@dataclass
class Stage:
    """The lab, and what runs on this machine to speak to it."""

    lab: Any
    addresses: Mapping[str, str]
    control: Control

    def run(self, name: str, *argv: str, timeout: float = 120) -> str:
        """What a program prints on a machine."""
        return self._try(lambda: str(self.lab.run(name, list(argv), timeout=timeout)))

    def nodewise(self, *words: str, timeout: float = 900) -> str:
        """What nodewise prints on the master."""
        return self._try(lambda: str(self.lab.nodewise(*words, timeout=timeout)))

    def kill(self, name: str) -> None:
        """Cut a machine's power."""
        self._try(lambda: self.lab.kill(name))

    def start(self, name: str, cpus: float) -> None:
        """Switch a machine on again, with the limit it had, and wait until all that it held is whole again."""
        self._try(lambda: self.lab.start(name))
        self.limit(name, cpus)
        until(self.whole, RETURN_SECONDS, f"HDFS and YARN have {name} again, and all replicas")
        until(self.is_ready, CALM_SECONDS, f"the service hears of {name} again")

    def limit(self, name: str, cpus: float) -> None:
        """Give a machine so many CPUs' worth of time."""
        self._try(lambda: self.lab.limit(name, cpus))

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

    def page(self, name: str, port: int, path: str, seconds: float = 10) -> Any:
        """The JSON that a daemon on a machine answers; BenchError when it does not."""
        daemon = Pages("daemon", f"http://{self.addresses[name]}:{port}", Limits(seconds, seconds, seconds * 6))
        try:
            return daemon.read_json(path, path)
        except HadoopError as error:
            raise BenchError(f"{error}; {UP}") from None

    def applications(self) -> list[dict[str, Any]]:
        """Those that YARN has not ended yet."""
        states = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
        found = self.page(MASTER, RESOURCEMANAGER_PORT, f"/ws/v1/cluster/apps?states={states}")["apps"] or {}
        apps: list[dict[str, Any]] = found.get("app", [])
        return apps

    def clear(self) -> None:
        """End what still runs, and wait until the cluster rests and is whole."""
        for one in self.applications():
            self.run(MASTER, "sudo", "-u", one["user"], "/usr/local/bin/yarn", "application", "-kill", one["id"])
        until(lambda: not self.applications() and self.whole(), CALM_SECONDS, "the cluster rests and is whole")

    def whole(self) -> bool:
        """Whether HDFS and YARN have all workers, and every block its replicas."""
        try:
            metrics = self.page(MASTER, RESOURCEMANAGER_PORT, "/ws/v1/cluster/metrics")["clusterMetrics"]
            beans = self.page(
                MASTER,
                NAMENODE_PORT,
                "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem*",
            )["beans"]
            blocks = {name: value for bean in beans for name, value in bean.items()}
            nodes = {metrics["activeNodes"], blocks["NumLiveDataNodes"]}
            return nodes == {len(WORKERS)} and not any(blocks[name] for name in REPLICAS)
        except (BenchError, LookupError):
            return False

    def is_ready(self) -> bool:
        """Whether the service hears of all workers."""
        nodes = json.loads(self.nodewise("node", "list", "--json"))
        return {one["node_name"] for one in nodes if one["state"] == "ready"} >= set(WORKERS)

    def everywhere(self, work: Callable[[str], T]) -> dict[str, T]:
        """The same on all workers at once."""
        with ThreadPoolExecutor(len(WORKERS)) as pool:
            return dict(zip(WORKERS, pool.map(work, WORKERS), strict=True))

    def places_by_values(self) -> bool:
        """Whether the ResourceManager has nodes ordered by the plug-in."""
        return f"<name>{PLACEMENT}</name><value>true<" in self.run(MASTER, "sudo", "cat", SCHEDULER)

    def place_by_values(self, on: bool) -> None:
        """Let the ResourceManager order nodes by the plug-in, or as stock does; it is started anew."""
        edit = f"s|(<name>{PLACEMENT}</name><value>)[a-z]+|\\1{'true' if on else 'false'}|"
        self.run(MASTER, "sudo", "sed", "-E", "-i", edit, SCHEDULER)
        self.run(MASTER, "sudo", "systemctl", "restart", "hadoop-resourcemanager")
        until(self.whole, CALM_SECONDS, "all nodes have come back to the ResourceManager")

    def _try(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except self.lab.LabError as error:
            raise BenchError(str(error)[-3000:]) from None


@contextmanager
def stage(cpus: float) -> Iterator[Stage]:
    """The lab with stock placement and a limit for its workers, as it was again afterwards."""
    carrier = lab()
    try:
        addresses = {one.name: one.address for one in carrier.machines()}
    except carrier.LabError as error:
        raise BenchError(str(error)) from None
    with tempfile.TemporaryDirectory(prefix="bench-paper-") as directory:
        made = Stage(carrier, addresses, Control(Path(directory), addresses, USER))
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
    """BenchError unless the four workers are there, with room for a worker and an application master beside it."""
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
