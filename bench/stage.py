"""A real cluster with its information service and pictures, for benches that run jobs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from hdfs import InsecureClient

from bench.clocks import Clocks
from bench.info.database import mariadb
from bench.info.errors import BenchError
from bench.pair import Member, Pair
from bench.programs import environment_of, log_in, with_jvm
from hadoop.local import daemons, health, lifecycle, ports, processes, state
from hadoop.local.daemons import Daemon
from hadoop.local.lifecycle import Cluster
from hadoop.local.planning import Wanted
from hadoop.rest.pages import Limits
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Producer

NODEWISE = (sys.executable, "-m", "nodewise")
CAPABILITY = "bench_capability"
"""A value that is put by hand, so that no collector has to run."""
PICTURES = "/bench/pictures"
START_SECONDS = 400.0
"""How long a cluster may take to start; beside much other work it takes ten times as long as alone."""
PATIENT = Limits(connect=60.0, silence=60.0, seconds=120.0)
"""Of a daemon that has to wait for its turn before it answers."""
ENDED = ("FINISHED", "FAILED", "KILLED")
"""The states in which YARN does nothing more for a job."""
MASTERS_SHARE = re.compile(r"(maximum-am-resource-percent</name><value>)[0-9.]+(</value>)")


@dataclass
class Stage:
    """What jobs of a bench run on.

    `service` is the process of the information service, `clocks` are those of its machines where they can jump, `pair`
    are two services in place of one.
    """

    cluster: Cluster
    service: subprocess.Popen[bytes] | None = None
    clocks: Clocks | None = None
    pair: Pair | None = None

    @property
    def url(self) -> str:
        """The information service, or both of a pair."""
        return self.pair.url if self.pair else f"http://{self.cluster.master}:{ports.INFOSVC}"

    @property
    def is_serving(self) -> bool:
        """Whether the information service runs, or both of a pair do."""
        if self.pair:
            return self.pair.is_whole
        return self.service is not None and self.service.poll() is None

    def nodewise(self, *words: str, timeout: float = 600) -> str:
        """What a command prints; BenchError when it fails."""
        done = subprocess.run(
            self._argv(words), capture_output=True, text=True, env=self._environment(), timeout=timeout
        )
        if done.returncode:
            raise BenchError(f"nodewise {' '.join(words)} failed: {done.stderr.strip()[-1500:]}")
        return done.stdout

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """A command that runs while others do."""
        piped = subprocess.PIPE
        return subprocess.Popen(self._argv(words), stdout=piped, stderr=piped, text=True, env=self._environment())

    def serve(self, *more: str) -> None:
        """Start the information service, with more options, or what is missing of a pair; wait until it answers."""
        if self.pair:
            self.pair.start()
            return
        words = ("serve", "--host", self.cluster.master, *more)
        null, variables = subprocess.DEVNULL, os.environ | daemons.environment_of_machine(None)
        self.service = subprocess.Popen(self._argv(words), stdout=null, stderr=null, env=variables)
        until(self._answers, 180, "the information service answers")

    def end_service(self) -> None:
        """End the information service, if it runs; what it has stored stays."""
        if self.pair:
            self.pair.end()
        if self.service:
            self.service.terminate()
            self.service.wait(120)

    def end_jobs(self) -> None:
        """Kill the jobs that have not ended."""
        for one in json.loads(self.nodewise("job", "list", "--json")):
            if one["state"] not in ENDED:
                self.nodewise("job", "kill", one["application_id"])

    def set_masters_share(self, share: float) -> None:
        """Let application masters take so much of the cluster, and start the ResourceManager anew."""
        file = self.cluster.conf_dir / "capacity-scheduler.xml"
        text, count = MASTERS_SHARE.subn(rf"\g<1>{share}\g<2>", file.read_text())
        if count != 1:
            raise BenchError(f"{file} does not say what application masters may take")
        file.write_text(text)
        restart(self.cluster, "resourcemanager")

    def client(self) -> InfoClient:
        """The information service as its admin calls it."""
        return InfoClient.from_token_file(self.url, self.cluster.home / "service" / "token", PATIENT.seconds)

    def judge(self, capability: Sequence[float]) -> None:
        """Say what each node can do, in the order of the nodes."""
        judge(self.client(), self.cluster.nodes, capability)

    def hdfs(self) -> InsecureClient:
        """HDFS over HTTP, by the NameNode that is active; for clusters without Kerberos."""
        return InsecureClient(";".join(self.cluster.namenodes_http), user=self.cluster.user)

    def working(self) -> list[psutil.Process]:
        """The processes of containers: application masters, workers and what they have forked."""
        return [one for one in processes.of_cluster(self.cluster.home, self.cluster.subnet) if module_of(one)]

    def _answers(self) -> bool:
        try:
            InfoClient(self.url).producers()
        except InfoError:
            return False
        return True

    def _argv(self, words: Sequence[str]) -> list[str]:
        return [*NODEWISE, "--home", str(self.cluster.home), *words]

    def _environment(self) -> dict[str, str]:
        return environment_of(self.cluster) | {"NODEWISE_URL": self.url}


def words_of_job(output: str, *more: str) -> list[str]:
    """What `job submit` is told of a job that classifies the pictures, its rows in `output`."""
    words = ["--input", PICTURES, "--output", output, "--capability", CAPABILITY, "--policy", "maxflow"]
    return [*words, "--engine", "onnx", "--batch", "8", *more]


def judge(client: InfoClient, nodes: Sequence[str], capability: Sequence[float]) -> None:
    """Say to a service what each of these nodes can do."""
    client.put_producer(Producer(CAPABILITY, cmd="", time_max=86400, kind=Kind.PROGRAM))
    for node, value in zip(nodes, capability, strict=True):
        client.put_value(CAPABILITY, node, value)


def restart(cluster: Cluster, kind: str) -> None:
    """Kill one of the master's daemons and start it anew, with its files as they are now, until all nodes are back."""
    daemon, nodes = Daemon(cluster, kind), set(cluster.nodes)
    process = daemons.find_running(cluster)[daemon]
    process.kill()
    process.wait()
    begun = daemons.start(daemon)

    def are_back() -> bool:
        if not processes.is_alive(begun):
            raise daemons.failure(daemon, "ended while starting")
        return health.running_nodemanagers(cluster) == nodes

    try:
        until(are_back, 300, "all nodes have come back")
    except BenchError as error:
        counted = health.running_nodemanagers(cluster)
        said = [str(daemons.failure(daemon, f"counts {counted}, and said last"))]
        for node in sorted(nodes - (counted or set())):
            away = Daemon(cluster, "nodemanager", node)
            state = "runs" if away in daemons.find_running(cluster) else "has ended"
            said.append(str(daemons.failure(away, f"{state}, and said last")))
        raise BenchError(f"{error}: {'; '.join(said)}") from error


def module_of(process: psutil.Process) -> str:
    """jobs.kinds, jobs.worker, or nothing: what of ours a process runs itself, its shell left out."""
    try:
        line = process.cmdline()
    except psutil.Error:
        return ""
    if line[:1] and "python" in line[0] and line[1:2] == ["-m"] and line[2].startswith("jobs."):
        return line[2]
    return ""


def signal_all(found: Iterable[psutil.Process], number: int) -> None:
    """Send a signal to processes; those that have ended are passed over."""
    for one in found:
        with suppress(psutil.NoSuchProcess):
            one.send_signal(number)


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait for a condition; BenchError when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise BenchError(f"waited {seconds:.0f} s in vain until {what}")
        time.sleep(0.1)
    return found


@contextmanager
def stage(
    home: Path | None,
    pictures: int,
    nodes: int = 4,
    cpus: Sequence[int] | None = None,
    serve: Sequence[str] = (),
    wanted: Wanted | None = None,
    paired: bool = False,
) -> Iterator[Stage]:
    """A stage with `pictures`, if any, at PICTURES until the end of the block; a given home is used again.

    `serve` are more options of the service, `wanted` is what else the cluster shall have. `paired` are two services.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        where = (home or Path(directory)).absolute()
        recorded = state.read(where)
        if recorded and daemons.find_running(recorded):
            raise BenchError(f"a cluster runs in {where}: `nodewise --home {where} cluster down`, or name another home")
        try:
            also: Wanted = {**(wanted or {}), "nodes": nodes, "cpus": cpus}
            cluster = lifecycle.up(where, ready_seconds=START_SECONDS, **also)
            log_in(cluster)
            with ExitStack() as stack:
                pair = stack.enter_context(_pair(cluster)) if paired else None
                made = stack.enter_context(on_cluster(cluster, pictures, serve, pair))
                yield made
        finally:
            lifecycle.down(where)
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _pair(cluster: Cluster) -> Iterator[Pair]:
    """Two services of a database that is made anew, on the masters of a cluster that has two."""
    folder = cluster.home / "database"
    folder.mkdir(exist_ok=True)
    shutil.rmtree(folder / "mariadb", ignore_errors=True)
    homes = (cluster.home, cluster.home / "second")
    with mariadb(folder / "mariadb") as database:
        members = [Member(home, at, ports.INFOSVC) for home, at in zip(homes, cluster.masters, strict=True)]
        yield Pair(database, members)


@contextmanager
def on_cluster(cluster: Cluster, pictures: int, serve: Sequence[str] = (), pair: Pair | None = None) -> Iterator[Stage]:
    """A stage on a cluster that runs already and goes on afterwards."""
    made = Stage(cluster, pair=pair)
    try:
        made.serve(*serve)
        if pictures:
            with tempfile.TemporaryDirectory(prefix="bench-") as directory:
                _load(made, Path(directory), pictures)
        yield made
    finally:
        made.end_service()


def _load(made: Stage, scratch: Path, pictures: int) -> None:
    if not made.cluster.kerberos:  # with Kerberos, a home is not used again with another number
        status = made.hdfs().status(PICTURES, strict=False)
        if status and len(made.hdfs().list(PICTURES)) == pictures:
            return
        made.hdfs().delete(PICTURES, recursive=True)  # those of a larger stage would stay beside the new ones
    folder, seconds = scratch / "pictures", 600 + 0.2 * pictures
    made.nodewise("images", "make", str(folder), "-n", str(pictures), timeout=seconds)
    if made.cluster.kerberos:  # with a handshake and a ticket for each picture, `images load` takes minutes
        for beside in (one for one in folder.iterdir() if one.suffix != ".jpg"):
            beside.unlink()  # labels, which a job would take for pictures
        with_jvm(made.cluster, "bench.reading.store", str(folder), PICTURES)
        return
    words = ("images", "load", str(folder), PICTURES, "--overwrite", "--json")
    loaded = json.loads(made.nodewise(*words, timeout=seconds))
    if loaded["loaded"] != pictures:
        raise BenchError(f"{loaded['loaded']} of {pictures} pictures were loaded")


@contextmanager
def cluster_of(home: Path | None, nodes: int = 4) -> Iterator[Cluster]:
    """The cluster of a home, left as it was, running or not; or a new one that is removed afterwards.

    So many nodes has one that was never started before.
    """
    if home:
        recorded = state.read(home.absolute())
        ran = recorded is not None and bool(daemons.find_running(recorded))
        try:
            yield lifecycle.up(home, nodes=None if recorded else nodes, ready_seconds=START_SECONDS)
        finally:
            if not ran:
                lifecycle.down(home)
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        try:
            yield lifecycle.up(Path(directory), nodes=nodes, ready_seconds=START_SECONDS)
        finally:
            lifecycle.down(Path(directory))
