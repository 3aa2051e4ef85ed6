"""A cluster whose nodes have networks of their own, and the processes of a run on it."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

from bench.info.processes import ROOT
from bench.stage import PATIENT, START_SECONDS, Stage, signal_all, stage, until
from bench.training_faults.network import Network, network
from hadoop.local import daemons, lifecycle, ports, processes
from hadoop.local.daemons import Daemon
from hadoop.local.processes import family
from hadoop.rest.resourcemanager import ResourceManager

NODES = 4
PROGRAM = ROOT / "bench" / "training_faults" / "program.py"
MASTER, LAUNCHER, STORE = "jobs.kinds", "jobs.kinds.train.launcher", "learning.member.store_server"
ON_NODES = ("datanode", "nodemanager")
PORT_SECONDS = 30.0


@dataclass(frozen=True)
class Place:
    """The stage, and the network of its nodes."""

    stage: Stage
    network: Network

    @property
    def nodes(self) -> Sequence[str]:
        """Their names, which are their addresses."""
        return self.stage.cluster.nodes

    def resourcemanager(self) -> ResourceManager:
        """What it tells of applications."""
        return ResourceManager(self.stage.cluster.rm_http, self.stage.cluster.user, PATIENT)

    def members(self) -> list[psutil.Process]:
        """The programs that train."""
        return [one for one in self._all() if PROGRAM.name in _words(one)[1:2]]

    def find(self, module: str) -> list[psutil.Process]:
        """What runs a module: MASTER, LAUNCHER or STORE."""
        return [one for one in self._all() if _words(one)[1:3] == ["-m", module]]

    def left(self) -> list[str]:
        """What runs of any run."""
        found = [*self.members(), *(one for module in (MASTER, LAUNCHER, STORE) for one in self.find(module))]
        return [f"{one.pid} on {node_of(one)}: {' '.join(_words(one)[1:3])}" for one in found]

    def daemon(self, kind: str, node: str) -> Daemon:
        """One of a node."""
        return Daemon(self.stage.cluster, kind, node)

    def kill(self, *some: Daemon) -> None:
        """Kill daemons, if they run."""
        running = daemons.find_running(self.stage.cluster)
        kill(running[one] for one in some if one in running)

    def start(self, daemon: Daemon) -> None:
        """Start a daemon of a node in its network, once its ports are free, unless it runs."""
        if daemon in daemons.find_running(self.stage.cluster):
            return
        until(lambda: not ports.find_held(daemon.addresses), PORT_SECONDS, f"the ports of {daemon.title} are free")
        self.network.enter(str(daemon.node), daemons.start(daemon).pid)

    def mend(self) -> None:
        """Heal the network, let everything go on that stands still, and start what is missing."""
        self.network.heal()
        signal_all(self._all(), signal.SIGCONT)
        for node in self.nodes:
            for kind in ON_NODES:
                self.start(self.daemon(kind, node))
        lifecycle.up(self.stage.cluster.home, ready_seconds=START_SECONDS)

    def _all(self) -> list[psutil.Process]:
        return processes.of_cluster(self.stage.cluster.home, self.stage.cluster.subnet)


@contextmanager
def place() -> Iterator[Place]:
    """The place until the end of the block; it needs root."""
    with stage(None, 0, nodes=NODES) as made, network(made.cluster.nodes) as cuttable:
        found = Place(made, cuttable)
        for node in found.nodes:  # they are on their own networks from their start on
            found.kill(*(found.daemon(kind, node) for kind in ON_NODES))
        found.mend()
        try:
            yield found
        finally:
            lifecycle.down(made.cluster.home)


def kill(some: Sequence[psutil.Process] | Iterator[psutil.Process]) -> None:
    """As one as can be: each stands still before the first is gone."""
    victims = list(some)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        signal_all(victims, number)


def node_of(one: psutil.Process) -> str:
    """The node of a process of a container; empty when it has ended."""
    with suppress(psutil.Error):
        return one.environ().get("NM_HOST", "")
    return ""


def with_all_below(some: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Processes with all that they have started."""
    return [below for one in some for below in family(one)]


def _words(one: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return one.cmdline()
    return []
