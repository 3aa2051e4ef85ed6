"""The lab as a place for faults: machines in containers, with addresses and disks of their own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hdfs import InsecureClient

from bench.faults import partitions
from bench.faults.volumes import Volume
from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.lab import (
    CALM_SECONDS,
    MASTER,
    NAMENODE_PORT,
    RESOURCEMANAGER_PORT,
    RETURN_SECONDS,
    SUPERUSER,
    USER,
    WORKERS,
    Machines,
    find_machines,
    known_by_name,
)
from bench.stage import PICTURES, judge, until
from infosvc.wire.client import InfoClient

SPEEDS = (1.0, 1.0, 1.0, 2.0)
VOLUME = "/srv/bench-volume"
UNIT, SCRIPT = "bench-volume.service", "/usr/local/sbin/bench-volume"
FOLDERS = {MASTER: ("/var/lib/hadoop", "/var/lib/mysql"), **dict.fromkeys(WORKERS, ("/var/lib/hadoop",))}
"""What lies on the small volume of each machine."""
MASTERS_UNITS = ("nodewise-infosvc", "hadoop-resourcemanager", "hadoop-namenode", "mariadb")
WORKERS_UNITS = ("hadoop-nodemanager", "hadoop-datanode")
UNITS = {MASTER: MASTERS_UNITS, **dict.fromkeys(WORKERS, WORKERS_UNITS)}
"""What uses it, in the order in which it is ended."""
UNIT_TEXT = f"""[Unit]
Description=A small volume for faults
Before={{before}}

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={SCRIPT}

[Install]
WantedBy=multi-user.target
"""
# Brackets, lest the pattern finds the shell that carries it.
WORKING = "pgrep -af '[-]m jobs[.](worker|kinds)' || true"


@dataclass
class Lab:
    """The machines, how an admin reaches their service, and their small volumes."""

    machines: Machines
    connect: Callable[[], InfoClient]
    volumes: Sequence[Volume] = ()
    name: str = "lab"
    user: str = USER

    @property
    def folder(self) -> Path:
        """Where the disks of its machines are kept."""
        return ROOT / ".lab"

    @property
    def resourcemanager(self) -> str:
        """Where its page is."""
        return f"http://{MASTER}:{RESOURCEMANAGER_PORT}"

    def hdfs(self, user: str = USER) -> InsecureClient:
        """HDFS over HTTP."""
        return InsecureClient(f"http://{MASTER}:{NAMENODE_PORT}", user=user)

    def nodewise(self, *words: str) -> str:
        """What a command prints on the master; BenchError when it fails."""
        return self.machines.nodewise(*words)

    def submit(self, *words: str) -> subprocess.Popen[str]:
        """Who submits a job on the master, and leaves it then, as the master may lose its power."""
        argv = ["sudo", "-u", USER, "nodewise", "job", "submit", *words, "--json"]
        config = self.machines.lab.keys.CONFIG
        ssh = ["ssh", "-F", str(config), MASTER, "--", shlex.join(argv)]
        null, piped = subprocess.DEVNULL, subprocess.PIPE
        return subprocess.Popen(ssh, stdin=null, stdout=piped, stderr=piped, text=True)

    def client(self) -> InfoClient:
        """The information service as its admin calls it."""
        return self.connect()

    def find_working(self) -> list[str]:
        """The command lines of application masters, workers and what they have forked, each with its machine."""
        found = self.machines.everywhere(lambda name: self.machines.run(name, "sh", "-c", WORKING))
        return [f"{name}: {line}" for name, told in found.items() for line in told.splitlines()]

    def find_master(self, job_id: str) -> str | None:
        """The machine on which the application master of a job runs; None when the ResourceManager does not say."""
        with suppress(BenchError):
            for one in self.machines.applications():
                if one["id"] == job_id and "amHostHttpAddress" in one:
                    return str(one["amHostHttpAddress"]).partition(":")[0]
        return None

    def back_up(self) -> None:
        """No fault of the lab brings an older database back."""

    def is_short(self) -> bool:
        """Whether HDFS lacks a machine or a replica, from an earlier fault."""
        return not self.machines.whole()

    def switch_on(self, name: str) -> None:
        """Give a machine its power again; it may use all processors."""
        self.machines.switch_on(name, os.cpu_count() or 1)

    def mend(self) -> None:
        """Undo what a fault may have left, and wait until all machines work and every block has its replicas."""
        partitions.heal()
        for name, state in self.machines.lab.power.states().items():
            if state != "running":
                self.switch_on(name)
        for volume in self.volumes:
            volume.empty()
        until(self._is_whole, RETURN_SECONDS, "HDFS and YARN have all machines, and all replicas")
        until(self._is_ready, CALM_SECONDS, "the service hears of all machines")

    def _is_whole(self) -> bool:
        if not self.machines.whole():
            with suppress(BenchError):  # a NameNode whose disk was full waits for somebody to say that it is not
                leave = ("sudo", "-u", SUPERUSER, "/usr/local/bin/hdfs", "dfsadmin", "-safemode", "leave")
                if self._is_safe():
                    self.machines.run(MASTER, *leave)
            return False
        return True

    def _is_safe(self) -> bool:
        found = self.machines.page(MASTER, NAMENODE_PORT, "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")
        return any("Resources are low" in str(bean.get("Safemode")) for bean in found["beans"])

    def _is_ready(self) -> bool:
        try:
            return self.machines.is_ready()
        except BenchError:
            return False


@contextmanager
def lab(_home: Path | None, pictures: int) -> Iterator[Lab]:
    """The lab that is up, with `pictures` and small volumes, as it was again afterwards; its limits are lifted."""
    found = find_machines()
    found.check()
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the lab is put back
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGTERM, before)
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        stack.enter_context(known_by_name(found.addresses))
        stack.callback(found.lab.limits)
        for name in found.addresses:
            found.limit(name, os.cpu_count() or 1)
        made = Lab(found, found.admin(scratch), _volumes(found))
        stack.callback(made.mend)
        stack.enter_context(_attached(made))
        _load(made, pictures)
        judge(made.client(), WORKERS, SPEEDS)
        yield made


def _volumes(machines: Machines) -> list[Volume]:
    def on(name: str) -> Volume:
        def run(*words: str) -> str:
            return machines.run(name, "sudo", *words, timeout=300)

        return Volume(name, run, VOLUME, FOLDERS[name])

    return [on(name) for name in FOLDERS]


@contextmanager
def _attached(place: Lab) -> Iterator[None]:
    """Put the volumes under the machines' folders, also when these start anew, until the end of the block."""
    try:
        _everywhere(_attach, place.volumes)
        place.mend()
        yield
    finally:
        try:
            place.mend()
        finally:
            _everywhere(_detach, place.volumes)


def _everywhere(work: Callable[[Volume], None], volumes: Sequence[Volume]) -> None:
    with ThreadPoolExecutor(len(volumes)) as pool:
        list(pool.map(work, volumes))


def _attach(volume: Volume) -> None:
    """It is there already when an earlier run was killed."""
    if volume.run("sh", "-c", f"systemctl is-active {UNIT} || true").strip() == "active":
        return
    volume.run("systemctl", "stop", *UNITS[volume.machine])
    try:
        volume.make()
        _write(volume, SCRIPT, volume.attach_script(), "755")
        before = " ".join(f"{unit}.service" for unit in UNITS[volume.machine])
        _write(volume, f"/etc/systemd/system/{UNIT}", UNIT_TEXT.format(before=before), "644")
        volume.run("systemctl", "daemon-reload")
        volume.run("systemctl", "enable", "--now", UNIT)
    finally:
        volume.run("systemctl", "start", *reversed(UNITS[volume.machine]))


def _detach(volume: Volume) -> None:
    volume.run("systemctl", "stop", *UNITS[volume.machine])
    try:
        volume.detach()
        volume.run("systemctl", "disable", "--now", UNIT)
        volume.run("rm", "-f", SCRIPT, f"/etc/systemd/system/{UNIT}")
    finally:
        volume.run("systemctl", "start", *reversed(UNITS[volume.machine]))


def _write(volume: Volume, path: str, text: str, mode: str) -> None:
    volume.run("sh", "-euc", 'printf %s "$2" > "$1"; chmod "$3" "$1"', "sh", path, text, mode)


def _load(place: Lab, count: int) -> None:
    """Put pictures into HDFS, unless just as many are there."""
    above = place.hdfs(SUPERUSER)
    above.makedirs("/bench")
    above.set_owner("/bench", owner=USER)
    status = place.hdfs().status(PICTURES, strict=False)
    if status and len(place.hdfs().list(PICTURES)) == count:
        return
    place.hdfs().delete(PICTURES, recursive=True)
    folder = place.machines.run(MASTER, "sudo", "-u", USER, "mktemp", "-d").strip()
    place.nodewise("images", "make", f"{folder}/pictures", "-n", str(count))
    place.nodewise("images", "load", f"{folder}/pictures", f"hdfs://{PICTURES}")
    place.machines.run(MASTER, "sudo", "rm", "-r", folder)
