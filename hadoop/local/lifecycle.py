"""Starts a real Hadoop cluster on this machine, waits until it works, and stops it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import psutil

from hadoop.client import class_archives
from hadoop.errors import HadoopError
from hadoop.local import (
    daemons,
    formatting,
    health,
    mounters,
    planning,
    ports,
    preflight,
    processes,
    site,
    sshd,
    state,
)
from hadoop.local.daemons import Daemon
from hadoop.local.planning import Wanted
from hadoop.local.state import Cluster, load

__all__ = ["Cluster", "DaemonStatus", "down", "load", "status", "status_of_mounters", "up"]

MIN_FREE_BYTES = 2_000_000_000
READY_SECONDS = 150.0
_POLL_SECONDS = 0.2
_KERBEROS_POLL_SECONDS = 0.7
"""There each look costs some processes, on a machine that has enough to do."""
_SLOW = "give a slow machine more time with --wait"
_NEED_FILE_SYSTEM = ("namenode", "datanode", "zkfc")
_NEEDED_BY_FORMAT = ("zookeeper", "journalnode")

Say = Callable[[str], None]


@dataclass(frozen=True)
class DaemonStatus:
    """One daemon as it is now; `pid` is None when it does not run, `ready` tells whether it does its work.

    `node` is None for those of the first master; `role` is active or standby for those of which there are two.
    """

    kind: str
    node: str | None
    pid: int | None
    ready: bool
    role: str | None = None


def up(
    home: Path,
    *,
    say: Say = lambda _: None,
    min_free_bytes: int = MIN_FREE_BYTES,
    ready_seconds: float = READY_SECONDS,
    **wanted: Unpack[Wanted],
) -> Cluster:
    """Start the cluster of this home, or what is missing of it, and return once all of it works.

    What is not `wanted` otherwise keeps its last value; at first: 4 nodes, the first free subnet, no pinning, no
    plug-in, no MapReduce, no GPUs, no Kerberos, one NameNode and one ResourceManager. `say` receives the news.
    HadoopError when the cluster cannot start; then, as after Ctrl-C, nothing that this call started is left running.
    """
    home = home.absolute()
    state.check_path(home, "--home")
    with state.explain_os_errors(home), state.lock(home), ExitStack() as stack:
        recorded = state.read(home)
        running = daemons.find_running(recorded) if recorded else {}
        cluster = planning.plan(home, recorded, wanted)
        alive = {replace(daemon, cluster=cluster): process for daemon, process in running.items()}
        planning.check(cluster, min_free_bytes)
        if recorded and alive:
            planning.refuse_moves(recorded, cluster)
        else:
            # What a crashed cluster left behind would hold ports and directories.
            _end_all(home, recorded)
            say("Checking that its ports are free")
            cluster = _choose_subnet(cluster, stack)
            _forget_work(cluster)
        missing = [daemon for daemon in daemons.of(cluster) if daemon not in alive]
        if not missing and not health.find_missing(cluster):
            say("The cluster is running already")
        elif alive:
            _repair(cluster, missing, say, ready_seconds)
        else:
            _start_all(cluster, say, ready_seconds)
        mounters.start_missing(cluster)
        return cluster


def down(home: Path) -> int:
    """End every process of this home's cluster, also after a crash, and give their number; the data stay."""
    home = home.absolute()
    with state.explain_os_errors(home):
        if not state.state_dir(home).exists():
            return _end_all(home, None)
        with state.lock(home):
            try:
                recorded = state.read(home)
            except HadoopError:
                recorded = None
            return _end_all(home, recorded)


def status(cluster: Cluster) -> list[DaemonStatus]:
    """Look at every daemon of the cluster."""
    alive = daemons.find_running(cluster)
    datanodes = health.live_datanodes(cluster)
    nodemanagers = health.running_nodemanagers(cluster)
    roles = health.roles(cluster) if cluster.ha else {}

    working: dict[str, Collection[str]] = {"datanode": datanodes or (), "nodemanager": nodemanagers or ()}

    def has_begun(daemon: Daemon) -> bool:
        if daemon.kind in working:
            return daemon.node in working[daemon.kind]
        if daemon.kind == "sshd":
            return health.answers_ssh(str(daemon.node))
        if daemon.kind in ("namenode", "resourcemanager"):
            if cluster.ha:
                return _role(roles, daemon) is not None
            return (datanodes if daemon.kind == "namenode" else nodemanagers) is not None
        return not _find_silent([daemon])

    return [
        DaemonStatus(
            daemon.kind,
            daemon.node,
            alive[daemon].pid if daemon in alive else None,
            daemon in alive and has_begun(daemon),
            _role(roles, daemon) if daemon in alive else None,
        )
        for daemon in daemons.of(cluster)
    ]


def _role(roles: Mapping[tuple[str, str], str | None], daemon: Daemon) -> str | None:
    return roles.get((daemon.kind, daemon.node or daemon.cluster.master))


def status_of_mounters(cluster: Cluster) -> list[DaemonStatus]:
    """Look at each node's mounter of environments, without which the cluster works, too."""
    pids = mounters.find_running(cluster)
    return [
        DaemonStatus("mounter", node, pids.get(node), node in pids and mounters.is_serving(cluster, node))
        for node in cluster.nodes
    ]


def _choose_subnet(cluster: Cluster, stack: ExitStack) -> Cluster:
    """Give the cluster its subnet, or the first free one, and claim it until the start is over."""
    choices = (cluster.subnet,) if cluster.subnet else ports.SUBNETS
    # Where there is a choice, the next subnet is there at once.
    patience = ports.ENDING_SECONDS if cluster.subnet else 0.0
    for choice in choices:
        placed = replace(cluster, subnet=choice)
        # On its own subnet a service may have gone on; where another cluster's still listens, this one's could not.
        service = [] if cluster.subnet else [(master, ports.INFOSVC) for master in placed.masters]
        try:
            stack.enter_context(ports.claim(choice, [*_addresses(daemons.of(placed)), *service], patience))
        except HadoopError:
            if choice == choices[-1]:
                raise
        else:
            return placed
    raise AssertionError("there is always a choice")


def _addresses(wanted: Iterable[Daemon]) -> list[ports.Address]:
    return [address for daemon in wanted for address in daemon.addresses]


def _end_all(home: Path, cluster: Cluster | None) -> int:
    return processes.end(lambda: processes.of_cluster(home, cluster.subnet if cluster else None))


def _start_all(cluster: Cluster, say: Say, ready_seconds: float) -> None:
    """Start every daemon of a cluster that does not run; when that fails, end all its processes."""
    try:
        _start(cluster, daemons.of(cluster), {}, say, ready_seconds)
    except BaseException:
        say("Stopping what was started")
        _end_all(cluster.home, cluster)
        raise


def _repair(cluster: Cluster, missing: Sequence[Daemon], say: Say, ready_seconds: float) -> None:
    """Start what is missing beside daemons that run; when that fails, end only what was started."""
    say("Checking that the ports of what is missing are free")
    busy = ports.find_held(_addresses(missing))
    if busy:
        raise ports.in_use_error(busy)
    started: dict[Daemon, psutil.Process] = {}
    try:
        _start(cluster, missing, started, say, ready_seconds)
    except BaseException:
        say("Stopping what was started")
        processes.end(lambda: [alive for process in started.values() for alive in processes.family(process)])
        raise


def _start(
    cluster: Cluster, missing: Sequence[Daemon], started: dict[Daemon, psutil.Process], say: Say, ready_seconds: float
) -> None:
    """Start these daemons, note them in `started`, and wait until the cluster works."""
    _prepare(cluster)
    say(f"Starting {len(missing)} daemons on {cluster.subnet}.*")
    # The file system is made while everything that can do without it starts.
    later = [daemon for daemon in missing if daemon.kind in _NEED_FILE_SYSTEM]
    noting = daemons.first_of_each_kind(missing)
    for daemon in missing:
        if daemon not in later:
            started[daemon] = daemons.start(daemon, daemon in noting)
            if daemon.kind == "kdc":  # the others ask it for tickets as soon as they begin
                _await_listening([daemon], started, ready_seconds)
    needed = [daemon for daemon in daemons.of(cluster) if daemon.kind in _NEEDED_BY_FORMAT]
    _await_listening(needed, started, ready_seconds)
    formatting.make(cluster)
    for daemon in later:
        started[daemon] = daemons.start(daemon, daemon in noting)
    _wait(cluster, started, say, ready_seconds)
    if cluster.kerberos:
        _make_folders(cluster)
    sshd.check_logins(cluster)
    _archive_classes(cluster, started.values(), say)


def _await_listening(wanted: Sequence[Daemon], started: Mapping[Daemon, psutil.Process], ready_seconds: float) -> None:
    """Wait until these listen; HadoopError when one ends or time is up."""
    deadline = time.monotonic() + ready_seconds
    while silent := _find_silent(wanted):
        _check_alive(started)
        if time.monotonic() > deadline:
            raise HadoopError(f"{', '.join(silent)} did not listen after {ready_seconds:.0f} s", _SLOW)
        time.sleep(_POLL_SECONDS)


def _check_alive(started: Mapping[Daemon, psutil.Process]) -> None:
    """Raise HadoopError with the reason when a daemon has ended."""
    for daemon, process in started.items():
        if not processes.is_alive(process):
            raise daemons.failure(daemon, "ended while starting")


def _make_folders(cluster: Cluster) -> None:
    """Give users their homes, by the NameNode that is active."""
    from hadoop.local.kerberos import folders  # other clusters need nothing of it

    folders.make(cluster.realm, health.active_namenode(cluster) if cluster.ha else cluster.namenode_http)


def _forget_work(cluster: Cluster) -> None:
    """Delete what YARN remembers: no old application runs, and other programs may have their pids by now.

    Two masters remember it in ZooKeeper, where nothing else is that lasts.
    """
    zookeeper = site.zookeeper(cluster) / "data"
    for directory in (site.rm_state(cluster), zookeeper, *(site.nm_state(cluster, node) for node in cluster.nodes)):
        if directory.exists():
            shutil.rmtree(directory)


def _prepare(cluster: Cluster) -> None:
    for directory in (cluster.logs, site.scratch(cluster)):
        directory.mkdir(parents=True, exist_ok=True)
    state.save(cluster)
    if cluster.kerberos:
        cluster.realm.prepare()
    site.render(cluster)
    sshd.prepare(cluster)


def _wait(cluster: Cluster, started: dict[Daemon, psutil.Process], say: Say, ready_seconds: float) -> None:
    """Wait until everything works; HadoopError when a daemon ends or time is up."""
    deadline = time.monotonic() + ready_seconds
    while waiting := health.find_missing(cluster) or _find_silent(started):
        _check_alive(started)
        preflight.check_disk(cluster.state, preflight.STUCK_BYTES)
        if time.monotonic() > deadline:
            raise HadoopError(
                f"the cluster was not ready after {ready_seconds:.0f} s, waiting for {', '.join(waiting)}",
                remedy=f"see {cluster.logs}, or {_SLOW}",
            )
        say(f"Waiting for {', '.join(waiting)}")
        time.sleep(_KERBEROS_POLL_SECONDS if cluster.kerberos else _POLL_SECONDS)


def _archive_classes(cluster: Cluster, started: Iterable[psutil.Process], say: Say) -> None:
    """Let daemons of these kinds start faster from now on, unless they do so already."""
    wanted: dict[Path, int] = {}
    for process in started:
        with suppress(psutil.Error):  # it has ended
            archive = class_archives.noted_for(process.cmdline())
            if archive:
                wanted[archive] = process.pid
    if wanted:
        say("Noting which classes the daemons load, so that they start faster from now on")
        class_archives.make(cluster.java, wanted)


def _find_silent(started: Iterable[Daemon]) -> list[str]:
    """Name the daemons that do not listen yet; their master may still count an earlier one as alive."""
    # Of two ResourceManagers, one that stands by listens on few of its ports, and was asked for its role.
    asked = [daemon for daemon in started if not (daemon.cluster.ha and daemon.kind == "resourcemanager")]
    return [daemon.title for daemon in asked if not all(map(ports.is_listening, daemon.addresses))]
