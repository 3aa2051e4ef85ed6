"""Starts the daemons of a cluster on this machine, finds them again, and reads what they said last."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import psutil

from hadoop.client import class_archives
from hadoop.client.jre import OPENS
from hadoop.errors import HadoopError
from hadoop.local import ports, preflight, processes, site, sshd
from hadoop.local.state import MARKER, Cluster

_CLASSES = {
    "zookeeper": "org.apache.zookeeper.server.ZooKeeperServerMain",
    "journalnode": "org.apache.hadoop.hdfs.qjournal.server.JournalNode",
    "zkfc": "org.apache.hadoop.hdfs.tools.DFSZKFailoverController",
    "namenode": "org.apache.hadoop.hdfs.server.namenode.NameNode",
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
    "resourcemanager": "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "nodemanager": "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
}
_TITLES = {
    "kdc": "KDC",
    "zookeeper": "ZooKeeper",
    "journalnode": "JournalNode",
    "zkfc": "fail-over controller",
    "namenode": "NameNode",
    "datanode": "DataNode",
    "resourcemanager": "ResourceManager",
    "nodemanager": "NodeManager",
    "sshd": "sshd",
}
_SMALL = ("zookeeper", "journalnode", "zkfc")
"""They do little here, and get a third of what the others have."""
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")


def _nothing_more(_node: str | None) -> dict[str, str]:
    return {}


environment_of_machine: Callable[[str | None], dict[str, str]] = _nothing_more
"""Variables that the daemons of a machine have beside the usual ones, by its node (None: the master).

A bench replaces it, to put a library with another clock below all daemons of a machine.
"""

_COMPLAINT = re.compile(r" (FATAL|ERROR) |Exception|^fatal|^error|[Nn]o space left")
_TAIL_BYTES = 64_000


@dataclass(frozen=True)
class Daemon:
    """One daemon of a cluster; `node` is None for those of the first master, and the address of the second."""

    cluster: Cluster
    kind: str
    node: str | None = None

    @property
    def title(self) -> str:
        """Its name for people."""
        return f"{_TITLES[self.kind]} {self.node}" if self.node else _TITLES[self.kind]

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.cluster.logs / (f"{self.kind}-{self.node}.log" if self.node else f"{self.kind}.log")

    @property
    def output(self) -> Path:
        """What it printed since its last start; sshd logs here."""
        return self.log if self.kind == "sshd" else self.log.with_suffix(".out")

    @property
    def identity(self) -> str:
        """A text that only its own command line contains."""
        if self.kind == "sshd":
            return str(sshd.config_file(self.cluster, str(self.node)))
        if self.kind == "kdc":
            return f"{self.cluster.state}/kerberos/kdc.pid"
        return f"-Dnodewise.daemon={self.kind}@{self.node or self.cluster.master}"

    @property
    def addresses(self) -> list[ports.Address]:
        """What it listens on."""
        number = self.cluster.nodes.index(self.node) + 1 if self.node in self.cluster.nodes else 0
        return ports.of(self.kind, self.node or self.cluster.master, number, self.cluster.kerberos)


def of(cluster: Cluster) -> list[Daemon]:
    """List every daemon of the cluster, in the order of their start."""
    alone = (*(("kdc",) if cluster.kerberos else ()), *(("zookeeper", "journalnode") if cluster.ha else ()))
    twice = ("namenode", "resourcemanager", *(("zkfc",) if cluster.ha else ()))
    return [
        *(Daemon(cluster, kind) for kind in alone),
        *(Daemon(cluster, kind, master) for master in (None, *cluster.masters[1:]) for kind in twice),
        *(Daemon(cluster, kind, node) for kind in ("datanode", "nodemanager", "sshd") for node in cluster.nodes),
    ]


def find_running(cluster: Cluster) -> dict[Daemon, psutil.Process]:
    """Find the daemons that run now."""
    found: dict[Daemon, psutil.Process] = {}
    candidates = []
    for process in processes.of_cluster(cluster.home, cluster.subnet):
        try:
            candidates.append((process.create_time(), " ".join(process.cmdline()), process))
        except psutil.Error:
            continue
    candidates.sort(key=lambda candidate: candidate[0])
    for daemon in of(cluster):
        # An sshd that has just accepted a connection looks like its listener for a moment; the oldest is the listener.
        matches = [process for _, line, process in candidates if f"{daemon.identity} " in f"{line} "]
        if matches:
            found[daemon] = matches[0]
    return found


def first_of_each_kind(some: Iterable[Daemon]) -> set[Daemon]:
    """Choose one daemon of each kind, the first: an archive of its classes serves all of the kind."""
    first: dict[str, Daemon] = {}
    for daemon in some:
        first.setdefault(daemon.kind, daemon)
    return set(first.values())


def command(daemon: Daemon, *arguments: str, notes_classes: bool = False) -> list[str]:
    """Build the command line that runs this daemon in the foreground."""
    cluster = daemon.cluster
    if daemon.kind == "sshd":
        return [str(sshd.program()), "-D", "-e", "-f", daemon.identity]
    if daemon.kind == "kdc":
        return [str(_kdc()), "-n", "-P", daemon.identity]
    return [
        str(cluster.java),
        f"-Xmx{64 if daemon.kind in _SMALL else 192}m",
        "-XX:+UseSerialGC",
        *(() if _encrypts_much(daemon) else ("-XX:TieredStopAtLevel=1",)),
        "-XX:-UsePerfData",
        *class_archives.options(_archive_kind(daemon), cluster.java, _jars(daemon), notes_classes),
        f"-XX:ErrorFile={cluster.logs}/{daemon.kind}-%p.crash",
        *OPENS,
        f"-Djava.io.tmpdir={site.scratch(cluster)}",
        "-Dnodewise.root.logger=INFO,file",
        f"-Dnodewise.log.file={daemon.log}",
        daemon.identity,
        *(cluster.realm.java_options if cluster.kerberos else ()),
        "-cp",
        ":".join(map(str, _class_path(daemon))),
        _CLASSES[daemon.kind],
        *arguments,
    ]


def _kdc() -> Path:
    from hadoop.local.kerberos import programs  # other clusters need nothing of it

    return programs.find("krb5kdc")


def _encrypts_much(daemon: Daemon) -> bool:
    """Whether it encrypts files or long lists, for which only Java's highest level uses the processor's own AES."""
    return daemon.kind in ("datanode", "namenode") and daemon.cluster.protection == "privacy"


def _archive_kind(daemon: Daemon) -> str:
    kind = f"{daemon.kind}-with-plugin" if _plugin(daemon) else daemon.kind
    return f"{kind}-with-kerberos" if daemon.cluster.kerberos else kind


def _jars(daemon: Daemon) -> list[Path]:
    return [*sorted(daemon.cluster.jars.glob("*.jar")), *_plugin(daemon), *_before_jars(daemon)]


def _class_path(daemon: Daemon) -> list[Path]:
    """The jars first, in which no site file lies: Java uses no archive of classes with a folder before their jars."""
    cluster = daemon.cluster
    folders = dict.fromkeys([site.conf_dir(cluster, daemon.node), *(_shared_folder(daemon))])
    return [*_before_jars(daemon), cluster.jars / "*", *_plugin(daemon), *folders]


def _shared_folder(daemon: Daemon) -> list[Path]:
    """Where two ResourceManagers find the one order of nodes: beside the site files of clients."""
    return [daemon.cluster.conf_dir] if daemon.kind == "resourcemanager" else []


def _before_jars(daemon: Daemon) -> list[Path]:
    """What stands before Hadoop's own classes."""
    return [site.WITHOUT_LIBHADOOP_JAR] if daemon.kind == "nodemanager" and daemon.cluster.kerberos else []


def _plugin(daemon: Daemon) -> list[Path]:
    return [site.PLUGIN_JAR] if daemon.kind == "resourcemanager" and daemon.cluster.plugin else []


def environment(cluster: Cluster) -> dict[str, str]:
    """The environment of every process of the cluster; it inherits little, so that it is the same for every user."""
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    return kept | {
        "JAVA_HOME": str(cluster.java_home),
        "HADOOP_CONF_DIR": str(cluster.conf_dir),
        "HADOOP_USER_NAME": cluster.user,
        MARKER: cluster.id,
    }


def start(daemon: Daemon, notes_classes: bool = False) -> psutil.Process:
    """Start a daemon in a session of its own, on its node's CPU where nodes are pinned; return its process.

    With `notes_classes` it is ready for `class_archives.make`, unless there is an archive.
    """
    words = command(daemon, *_arguments(daemon), notes_classes=notes_classes)
    return spawn(daemon.cluster, daemon.node, words, daemon.output, _variables(daemon))


def _arguments(daemon: Daemon) -> list[str]:
    return [str(site.zookeeper(daemon.cluster) / "zoo.cfg")] if daemon.kind == "zookeeper" else []


def _variables(daemon: Daemon) -> dict[str, str]:
    return daemon.cluster.realm.environment_of_kdc() if daemon.kind == "kdc" else {}


def spawn(
    cluster: Cluster,
    node: str | None,
    words: Sequence[str],
    log: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> psutil.Process:
    """Start what belongs to a machine of the cluster, with more variables; None is the master's machine."""
    # Spawned rather than kept as a Popen: it outlives this program, which has nothing to wait for. `env` sets the
    # working directory, so that no directory of the caller stays in use.
    argv = ["/usr/bin/env", "-C", str(cluster.state), *words]
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    allowed = os.sched_getaffinity(0)
    try:
        if cluster.cpus and node in cluster.nodes:
            os.sched_setaffinity(0, {cluster.cpus[cluster.nodes.index(node)]})
        pid = os.posix_spawn(
            argv[0],
            argv,
            {**environment(cluster), **environment_of_machine(node), **variables},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
            ],
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
    finally:
        # The affinity of the calling thread is what a child inherits; this thread takes its own back.
        os.sched_setaffinity(0, allowed)
        os.close(null)
        os.close(output)
    return psutil.Process(pid)


def failure(daemon: Daemon, what: str) -> HadoopError:
    """Say that a daemon failed, where its log is, and the last line in it that tells why."""
    state = daemon.cluster.state
    line = last_complaint([daemon.output, daemon.log])
    # A daemon without room for its files often cannot even write that down.
    if "No space left on device" in line or shutil.disk_usage(state).free < preflight.STUCK_BYTES:
        line = f"the disk under {state} is full, free some space or use another --home"
    return HadoopError(f"{daemon.title} {what}: {line} (log: {daemon.log})")


def last_complaint(logs: Iterable[Path]) -> str:
    """Return the last line that names an error in the first of these files that has one, else the last line at all."""
    last = "it wrote nothing"
    for log in logs:
        lines = [line.strip() for line in _tail(log).splitlines() if line.strip()]
        # A stack trace's own lines say where, not what.
        lines = [line for line in lines if not line.startswith("at ")]
        complaints = [line for line in lines if _COMPLAINT.search(line)]
        if complaints:
            return complaints[-1]
        last = lines[-1] if lines else last
    return last


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            handle.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return handle.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
