"""The lab as benches use it: nothing else of them knows how its machines are reached."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.stage import until
from hadoop.errors import HadoopError
from hadoop.rest.default_ports import DEFAULT_PORTS
from hadoop.rest.pages import Limits, Pages
from infosvc.wire.client import DEFAULT_PORT, InfoClient

NAMENODE_PORT = DEFAULT_PORTS["dfs.namenode.http-address"]
RESOURCEMANAGER_PORT = DEFAULT_PORTS["yarn.resourcemanager.webapp.address"]
T = TypeVar("T")

MASTER, WORKERS = "master", ("worker1", "worker2", "worker3", "worker4")
USER, SUPERUSER = "nodewise", "hdfs"
UP = "run scripts/lab up"
TOKEN, AUTHORITY = "/var/lib/nodewise/service/token", "/etc/nodewise/tls/ca.pem"
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
class Machines:
    """The machines of a lab that is up, and the cluster on them."""

    lab: Any
    addresses: Mapping[str, str]

    def check(self) -> None:
        """BenchError when they are another checkout's, or this user cannot change them."""
        self._try(self.lab.daemons.check_host)

    def run(self, name: str, *argv: str, timeout: float = 120) -> str:
        """What a program prints on a machine."""
        return self._try(lambda: str(self.lab.run(name, list(argv), timeout=timeout)))

    def nodewise(self, *words: str, timeout: float = 900) -> str:
        """What nodewise prints on the master."""
        return self._try(lambda: str(self.lab.nodewise(*words, timeout=timeout)))

    def write(self, name: str, path: str, text: str) -> None:
        """Replace what a file on a machine holds; its owner and mode stay."""
        self.run(name, "sudo", "sh", "-euc", 'printf %s "$2" > "$1"', "sh", path, text)

    def admin(self, folder: Path) -> Callable[[], InfoClient]:
        """Makes clients of the information service for its admin; what they trust is kept in `folder`.

        They know the master by its name alone: see `known_by_name`.
        """
        authority = folder / "ca.pem"
        authority.write_text(self.run(MASTER, "sudo", "cat", AUTHORITY))
        token = self.run(MASTER, "sudo", "cat", TOKEN).strip()
        return lambda: InfoClient(f"https://{MASTER}:{DEFAULT_PORT}", token, ca_file=authority)

    def kill(self, name: str) -> None:
        """Cut a machine's power."""
        self._try(lambda: self.lab.kill(name))

    def switch_on(self, name: str, cpus: float) -> None:
        """Give a machine its power again, and the limit it had."""
        self._try(lambda: self.lab.start(name))
        self.limit(name, cpus)

    def start(self, name: str, cpus: float) -> None:
        """Switch a machine on again, with the limit it had, and wait until all that it held is whole again."""
        self.switch_on(name, cpus)
        until(self.whole, RETURN_SECONDS, f"HDFS and YARN have {name} again, and all replicas")
        until(self.is_ready, CALM_SECONDS, f"the service hears of {name} again")

    def limit(self, name: str, cpus: float) -> None:
        """Give a machine so many CPUs' worth of time."""
        self._try(lambda: self.lab.limit(name, cpus))

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

    def _try(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except self.lab.LabError as error:
            raise BenchError(str(error)[-3000:]) from None


def find_machines() -> Machines:
    """Those of the lab that is up; BenchError when none is."""
    carrier = lab()
    try:
        return Machines(carrier, {one.name: one.address for one in carrier.machines()})
    except carrier.LabError as error:
        raise BenchError(str(error)) from None


@contextmanager
def known_by_name(addresses: Mapping[str, str]) -> Iterator[None]:
    """Let this process know the machines by name: certificates name them so, and HDFS and YARN hand the names on."""
    before = socket.getaddrinfo

    def find(host: Any, *words: Any, **more: Any) -> Any:
        return before(addresses.get(host, host), *words, **more)

    socket.getaddrinfo = find
    try:
        yield
    finally:
        socket.getaddrinfo = before
