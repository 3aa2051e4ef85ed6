"""Starts a real Hadoop cluster on this machine, waits until it works, and stops it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from hadoop.client import class_archives
from hadoop.client.jars import JARS, check_jars
from hadoop.client.jre import find_java
from hadoop.errors import HadoopError
from hadoop.local import daemons, health, mounters, ports, preflight, processes, site, sshd, state
from hadoop.local.daemons import Daemon
from hadoop.local.state import Cluster, load

__all__ = ["Cluster", "DaemonStatus", "down", "load", "status", "status_of_mounters", "up"]

DEFAULT_NODES = 4
MIN_FREE_BYTES = 2_000_000_000
READY_SECONDS = 150.0
_POLL_SECONDS = 0.2

Say = Callable[[str], None]


@dataclass(frozen=True)
class DaemonStatus:
    """One daemon as it is now; `pid` is None when it does not run, `ready` tells whether it does its work."""

    kind: str
    node: str | None
    pid: int | None
    ready: bool


def up(
    home: Path,
    nodes: int | None = None,
    subnet: str | None = None,
    cpus: Sequence[int] | None = None,
    jars: Path | None = None,
    plugin: bool | None = None,
    say: Say = lambda _: None,
    min_free_bytes: int = MIN_FREE_BYTES,
    ready_seconds: float = READY_SECONDS,
    mapreduce: bool | None = None,
    gpus: Sequence[int] | None = None,
) -> Cluster:
    """Start the cluster of this home, or what is missing of it, and return once all of it works.

    An argument that is not given keeps its last value; at first: 4 nodes, the first free subnet, no pinning, no
    plug-in, no MapReduce, no GPUs. `cpus` names one CPU for each node, `gpus` how many GPUs YARN counts on it, `say`
    receives the news. HadoopError when the cluster cannot start; then, as after Ctrl-C, nothing that this call started
    is left running.
    """
    home = home.absolute()
    state.check_path(home, "--home")
    with state.explain_os_errors(home), state.lock(home), ExitStack() as stack:
        recorded = state.read(home)
        alive = daemons.find_running(recorded) if recorded else {}
        cluster = _plan(home, recorded, nodes, subnet, cpus, jars, plugin, mapreduce, gpus)
        _check(cluster, min_free_bytes)
        if recorded and alive:
            _refuse_moves(recorded, cluster)
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

    def has_begun(daemon: Daemon) -> bool:
        return {
            "namenode": datanodes is not None,
            "resourcemanager": nodemanagers is not None,
            "datanode": daemon.node in (datanodes or ()),
            "nodemanager": daemon.node in (nodemanagers or ()),
            "sshd": daemon.kind == "sshd" and health.answers_ssh(str(daemon.node)),
        }[daemon.kind]

    return [
        DaemonStatus(
            daemon.kind,
            daemon.node,
            alive[daemon].pid if daemon in alive else None,
            daemon in alive and has_begun(daemon),
        )
        for daemon in daemons.of(cluster)
    ]


def status_of_mounters(cluster: Cluster) -> list[DaemonStatus]:
    """Look at each node's mounter of environments, without which the cluster works, too."""
    pids = mounters.find_running(cluster)
    return [
        DaemonStatus("mounter", node, pids.get(node), node in pids and mounters.is_serving(cluster, node))
        for node in cluster.nodes
    ]


def _check(cluster: Cluster, min_free_bytes: int) -> None:
    """Raise HadoopError when something is missing that it needs."""
    check_jars(cluster.jars)
    if cluster.plugin:
        preflight.check_plugin(site.PLUGIN_JAR)
    preflight.check_disk(cluster.state, min_free_bytes)


def _plan(
    home: Path,
    recorded: Cluster | None,
    nodes: int | None,
    subnet: str | None,
    cpus: Sequence[int] | None,
    jars: Path | None,
    plugin: bool | None,
    mapreduce: bool | None,
    gpus: Sequence[int] | None,
) -> Cluster:
    """Describe the wanted cluster by what was asked for, else by what was recorded, else by the defaults."""
    sshd.program()
    size = nodes if nodes is not None else recorded.size if recorded else DEFAULT_NODES
    if not 1 <= size <= state.MAX_NODES:
        raise HadoopError(f"--nodes {size} is not allowed", remedy=f"give 1 to {state.MAX_NODES}")
    if recorded and recorded.user != state.current_user():
        raise HadoopError(
            f"this cluster belongs to user {recorded.user}", remedy="start it as that user, or use another --home"
        )
    if recorded and size < recorded.size:
        raise HadoopError(
            f"this cluster has {recorded.size} nodes with data on each and cannot shrink to {size}",
            remedy=f"use another --home, or `nodewise cluster down` and delete {recorded.state}",
        )
    planned = Cluster(
        home=home,
        subnet=ports.check_subnet(subnet) if subnet else recorded.subnet if recorded else "",
        size=size,
        user=state.current_user(),
        jars=(jars or _kept_jars(recorded)).absolute(),
        java=find_java(os.environ.get("JAVA_HOME")),
        cpus=tuple(cpus) if cpus is not None else recorded.cpus if recorded else (),
        plugin=plugin if plugin is not None else bool(recorded and recorded.plugin),
        mapreduce=mapreduce if mapreduce is not None else bool(recorded and recorded.mapreduce),
        gpus=tuple(gpus) if gpus is not None else recorded.gpus if recorded else (),
    )
    state.check_path(planned.jars, "--jars")
    _check_cpus(planned)
    _check_gpus(planned)
    return planned


def _kept_jars(recorded: Cluster | None) -> Path:
    """Those that the cluster has had; this installation's where they have gone with another one."""
    return recorded.jars if recorded and recorded.jars.is_dir() else JARS


def _check_cpus(cluster: Cluster) -> None:
    usable = os.sched_getaffinity(0)
    if not cluster.cpus:
        return
    if len(cluster.cpus) != cluster.size:
        raise HadoopError(
            f"--cpus names {len(cluster.cpus)} CPUs for {cluster.size} nodes", remedy="name one for each node"
        )
    for cpu in cluster.cpus:
        if cpu not in usable:
            raise HadoopError(f"--cpus names CPU {cpu}, and this machine offers {sorted(usable)}")


def _check_gpus(cluster: Cluster) -> None:
    if cluster.gpus and len(cluster.gpus) != cluster.size:
        raise HadoopError(
            f"--gpus has {len(cluster.gpus)} numbers for {cluster.size} nodes", remedy="give one for each node"
        )


def _is_continued(before: Sequence[int], now: Sequence[int]) -> bool:
    """Whether what there is for each node is the same for those nodes that were there before."""
    return before == now[: len(before)] and bool(before) == bool(now)


def _refuse_moves(recorded: Cluster, planned: Cluster) -> None:
    """Raise HadoopError when addresses, CPUs, GPUs or plug-in would change under daemons that run."""
    unchanged = {
        "--subnet": recorded.subnet == planned.subnet,
        "--cpus": _is_continued(recorded.cpus, planned.cpus),
        "--gpus": _is_continued(recorded.gpus, planned.gpus),
        "--plugin": recorded.plugin == planned.plugin,
        "--mapreduce": recorded.mapreduce == planned.mapreduce,
    }
    for option, same in unchanged.items():
        if not same:
            raise HadoopError(f"{option} cannot change while the cluster runs", remedy="`nodewise cluster down` first")


def _choose_subnet(cluster: Cluster, stack: ExitStack) -> Cluster:
    """Give the cluster its subnet, or the first free one, and claim it until the start is over."""
    choices = (cluster.subnet,) if cluster.subnet else ports.SUBNETS
    # Where there is a choice, the next subnet is there at once.
    patience = ports.ENDING_SECONDS if cluster.subnet else 0.0
    for choice in choices:
        placed = replace(cluster, subnet=choice)
        try:
            stack.enter_context(ports.claim(choice, _addresses(daemons.of(placed)), patience))
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
    # The NameNode formats its directory while everything that can do without it starts.
    later = [daemon for daemon in missing if daemon.kind in ("namenode", "datanode")]
    noting = daemons.first_of_each_kind(missing)
    for daemon in missing:
        if daemon not in later:
            started[daemon] = daemons.start(daemon, daemon in noting)
    _format_namenode(cluster)
    for daemon in later:
        started[daemon] = daemons.start(daemon, daemon in noting)
    _wait(cluster, started, say, ready_seconds)
    sshd.check_logins(cluster)
    _archive_classes(cluster, started.values(), say)


def _forget_work(cluster: Cluster) -> None:
    """Delete what YARN remembers: no old application runs, and other programs may have their pids by now."""
    for directory in (site.rm_state(cluster), *(site.nm_state(cluster, node) for node in cluster.nodes)):
        if directory.exists():
            shutil.rmtree(directory)


def _prepare(cluster: Cluster) -> None:
    for directory in (cluster.logs, site.scratch(cluster)):
        directory.mkdir(parents=True, exist_ok=True)
    state.save(cluster)
    site.render(cluster)
    sshd.prepare(cluster)


def _format_namenode(cluster: Cluster) -> None:
    """Make an empty file system, once; begin again after an interrupted attempt."""
    directory = cluster.state / "namenode"
    done = directory / "formatted"
    if done.exists():
        return
    if directory.exists():
        shutil.rmtree(directory)
    namenode = Daemon(cluster, "namenode")
    result = subprocess.run(
        daemons.command(namenode, "-format", "-nonInteractive", "-force"),
        env=daemons.environment(cluster),
        cwd=cluster.state,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        namenode.output.write_text(result.stdout + result.stderr, encoding="utf-8")
        raise daemons.failure(namenode, "could not make a new file system")
    done.touch()


def _wait(cluster: Cluster, started: dict[Daemon, psutil.Process], say: Say, ready_seconds: float) -> None:
    """Wait until everything works; HadoopError when a daemon ends or time is up."""
    deadline = time.monotonic() + ready_seconds
    while waiting := health.find_missing(cluster) or _find_silent(started):
        for daemon, process in started.items():
            if not processes.is_alive(process):
                raise daemons.failure(daemon, "ended while starting")
        preflight.check_disk(cluster.state, preflight.STUCK_BYTES)
        if time.monotonic() > deadline:
            raise HadoopError(
                f"the cluster was not ready after {ready_seconds:.0f} s, waiting for {', '.join(waiting)}",
                remedy=f"see {cluster.logs}, or give a slow machine more time with --wait",
            )
        say(f"Waiting for {', '.join(waiting)}")
        time.sleep(_POLL_SECONDS)


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
    return [daemon.title for daemon in started if not all(ports.is_listening(address) for address in daemon.addresses)]
