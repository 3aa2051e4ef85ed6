"""Finds the processes of a cluster by the marker in their environment, and ends them by pid."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from hadoop.errors import HadoopError
from hadoop.local import ports
from hadoop.local.state import MARKER, cluster_id, state_dir

GRACE_SECONDS = 6.0
DEADLINE_SECONDS = 40.0


def of_cluster(home: Path, subnet: str | None) -> list[psutil.Process]:
    """Find every process of this home's cluster: daemons, ssh sessions, and whatever those have started.

    The caller and its parents are left out, so that a cluster can be stopped from a session on its own node.
    """
    marker = cluster_id(home)
    spared = set(_own_line())
    everything = list(psutil.process_iter(["ppid"]))
    family = {
        process.pid: process
        for process in everything
        if _environment(process).get(MARKER) == marker or _is_sshd(process, state_dir(home), subnet)
    }
    grown = True
    while grown:
        heirs = {p.pid: p for p in everything if p.info["ppid"] in family and p.pid not in family}
        family.update(heirs)
        grown = bool(heirs)
    return [process for process in family.values() if process.pid not in spared]


def _own_line() -> Iterator[int]:
    """This process and its parents, as far up as they live."""
    process: psutil.Process | None = psutil.Process()
    with suppress(psutil.NoSuchProcess):
        while process:
            yield process.pid
            process = process.parent()


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def _is_sshd(process: psutil.Process, state: Path, subnet: str | None) -> bool:
    """Tell whether this is an sshd of ours; sshd overwrites its environment with its title, so the marker is gone.

    A listener names its configuration, and its sessions are its children. Only a session that has lost its listener
    is known by its address, which a cluster of another home may use by now.
    """
    try:
        if not process.name().startswith("sshd"):
            return False
        if f"{state}/" in " ".join(process.cmdline()):
            return True
        parent = process.parent()
        if subnet is None or (parent and parent.name().startswith("sshd")):
            return False
        sockets = process.net_connections("tcp4")
    except (psutil.Error, OSError):
        return False
    # A listener that is just accepting a connection has it open too.
    return all(socket.status != psutil.CONN_LISTEN for socket in sockets) and any(
        socket.laddr and socket.laddr.ip.rpartition(".")[0] == subnet and socket.laddr.port == ports.SSHD
        for socket in sockets
    )


def is_alive(process: psutil.Process) -> bool:
    """Tell whether a process still does anything; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def family(process: psutil.Process) -> list[psutil.Process]:
    """Return a process and all its descendants that live."""
    try:
        return [process, *process.children(recursive=True)] if is_alive(process) else []
    except psutil.NoSuchProcess:
        return []


def end(find: Callable[[], Iterable[psutil.Process]]) -> int:
    """End all that `find` returns until it returns nothing; give the number of processes ended.

    SIGTERM first; SIGKILL after a grace time, because a NodeManager without its ResourceManager ignores SIGTERM.
    HadoopError when some would not go.
    """
    ended: set[int] = set()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while left := list(find()):
        if time.monotonic() > deadline:
            raise HadoopError(f"processes {sorted(p.pid for p in left)} would not end", remedy="look at them with `ps`")
        ended.update(process.pid for process in left)
        _signal(left, "terminate")
        _, alive = psutil.wait_procs(left, timeout=GRACE_SECONDS)
        _signal(alive, "kill")
        psutil.wait_procs(alive, timeout=GRACE_SECONDS)
    return len(ended)


def _signal(processes: Iterable[psutil.Process], method: str) -> None:
    """Call terminate or kill on each; psutil compares the creation time first, so a reused pid is safe."""
    for process in processes:
        try:
            getattr(process, method)()
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            raise HadoopError(
                f"process {process.pid} belongs to another user",
                remedy="run `nodewise cluster down` as that user or as root",
            ) from None
