"""The cluster that `nodewise cluster up` starts on this machine, as a place for faults."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import psutil
from hdfs import InsecureClient

from bench.clocks import jumping_clocks
from bench.faults.volumes import Volume
from bench.info.errors import BenchError
from bench.programs import output
from bench.stage import START_SECONDS, Stage, module_of, stage
from hadoop.local import daemons, lifecycle, state
from hadoop.rest.masters import Addresses
from infosvc.wire.client import InfoClient

NODES = 4
SPEEDS = (1.0, 1.0, 1.0, 2.0)
FROZEN_SECONDS = 14.0
"""How long a worker stands still: longer than a lease, so that what it brings afterwards comes too late."""


@dataclass
class Local:
    """A stage, whose service is a process of ours; its nodes and its service have small volumes, if any.

    `frozen_seconds` is how long a worker stands still.
    """

    stage: Stage
    volumes: Sequence[Volume] = ()
    name: str = "local"
    frozen_seconds: float = FROZEN_SECONDS

    @property
    def folder(self) -> Path:
        """The home of the cluster."""
        return self.stage.cluster.home

    @property
    def user(self) -> str:
        """Who owns the jobs."""
        return self.stage.cluster.user

    @property
    def resourcemanager(self) -> Addresses:
        """Where its page is; of two, where both are."""
        return self.stage.cluster.managers_http

    @property
    def database(self) -> Path:
        """The service's."""
        return self.stage.cluster.home / "service" / "infosvc.db"

    @property
    def backup(self) -> Path:
        """What it held before the job."""
        return self.database.with_suffix(".before")

    def hdfs(self) -> InsecureClient:
        """HDFS over HTTP."""
        return self.stage.hdfs()

    def nodewise(self, *words: str) -> str:
        """What a command prints; BenchError when it fails."""
        return self.stage.nodewise(*words)

    def submit(self, *words: str) -> Popen[str]:
        """Who submits a job and follows it."""
        return self.stage.begin("job", "submit", *words, "--wait", "--json")

    def client(self) -> InfoClient:
        """The information service as its admin calls it."""
        return self.stage.client()

    def find_working(self) -> list[str]:
        """The command lines of application masters, workers and what they have forked."""
        found = []
        for one in self.stage.working():
            with suppress(psutil.Error):  # it has ended since it was found
                found.append(" ".join(one.cmdline()))
        return found

    def back_up(self) -> None:
        """Keep what the service's database holds."""
        self.backup.unlink(missing_ok=True)
        with closing(sqlite3.connect(self.database)) as now:
            now.execute("VACUUM INTO ?", (str(self.backup),))

    def is_short(self) -> bool:
        """Whether a DataNode was killed and not started again."""
        running = daemons.find_running(self.stage.cluster)
        return any(one.kind == "datanode" and one not in running for one in daemons.of(self.stage.cluster))

    def mend(self) -> None:
        """Start again whatever is missing, and set all clocks right."""
        if self.stage.clocks:
            self.stage.clocks.put_right()
        lifecycle.up(self.stage.cluster.home, ready_seconds=START_SECONDS)
        if not self.stage.is_serving:
            self.stage.serve()

    def workers(self) -> list[psutil.Process]:
        """The first process of each worker."""
        mine = [one for one in self.stage.working() if module_of(one) == "jobs.worker"]
        pids = {one.pid for one in mine}
        return [one for one in mine if _parent_of(one) not in pids]

    def masters(self) -> list[psutil.Process]:
        """The processes of application masters."""
        return [one for one in self.stage.working() if module_of(one) == "jobs.kinds"]


@contextmanager
def local(home: Path | None, pictures: int, nodes: int = NODES) -> Iterator[Local]:
    """A cluster with clocks that jump and, if root runs this, small volumes; a given home is used again."""
    with ExitStack() as stack:
        where = stack.enter_context(home_of(home))
        clocks = stack.enter_context(jumping_clocks())
        volumes = stack.enter_context(attached(where, nodes, {"service": where / "service"}))
        made = stack.enter_context(stage(where, pictures, nodes=nodes))
        made.clocks = clocks
        made.judge(SPEEDS[-nodes:])
        yield Local(made, volumes)


@contextmanager
def home_of(home: Path | None) -> Iterator[Path]:
    """A given home, or a new one until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield (home or Path(folder)).absolute()


@contextmanager
def attached(home: Path, nodes: int, others: Mapping[str, Path]) -> Iterator[list[Volume]]:
    """A volume for each node and for other folders, by name; none where this user can mount nothing."""
    recorded = state.read(home)
    if recorded and daemons.find_running(recorded):
        raise BenchError(f"a cluster runs in {home}: `nodewise --home {home} cluster down`, or name another home")
    folders = {f"node {number}": state.state_dir(home) / "nodes" / str(number) for number in range(1, nodes + 1)}
    volumes = [
        Volume(name, _run, str(home / "volumes" / name.replace(" ", "")), (str(folder),))
        for name, folder in {**folders, **others}.items()
    ]
    with ExitStack() as stack:
        try:
            for one in volumes:
                one.make()
                one.attach()
                stack.callback(one.detach)
        except BenchError:
            volumes = []
        yield volumes


def _run(*words: str) -> str:
    return output(words, f"a change of a volume ({words[-1]})")


def _parent_of(one: psutil.Process) -> int | None:
    """None of a process that has ended since it was found."""
    try:
        return one.ppid()
    except psutil.Error:
        return None
