"""Watches over one box beside the broker's process for it, so that the box ends whichever of the two is killed."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import NoReturn

from boxes.broker.engine import NOT_FOUND, Engine, EngineError
from boxes.broker.pinned import pinned, unpin

LABEL = "nodewise.box"
"""Of each container: who watches over it, as `watcher` writes it."""
REMOVE_SECONDS = 60.0
PAUSE_SECONDS = 0.2
_BOX, _CONTAINER, _DONE = b"B", b"C", b"D"
_ID_BYTES = 64


class Guard:
    """The guard as its broker sees it: a process that waits for the broker to say that the box is gone, or to die."""

    def __init__(self, engine: Engine, container_name: str) -> None:
        """Start it; the container and the place of its folder may come to exist afterwards."""
        self.line, other = socket.socketpair()
        place = watcher()
        if os.fork() == 0:
            self.line.close()
            _guard(other, engine, container_name, place)
        other.close()

    def tell_process(self, pidfd: int) -> None:
        """The first process of the box: the guard kills it without Docker if it has to."""
        with suppress(OSError):
            socket.send_fds(self.line, [_BOX], [pidfd])

    def tell_container(self, container_id: str) -> None:
        """The id of the container, by which its processes are found before the first of them is told."""
        with suppress(OSError):
            self.line.sendall(_CONTAINER + container_id.encode().ljust(_ID_BYTES))

    def has_ended(self) -> bool:
        """Whether somebody has killed it."""
        return bool(select.select([self.line], [], [], 0)[0])

    def dismiss(self) -> None:
        """Nothing is left to guard."""
        with suppress(OSError):
            self.line.sendall(_DONE)


def _guard(line: socket.socket, engine: Engine, container_name: str, place: str) -> NoReturn:
    """What the process of the guard does."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _close_all_but(line.fileno())
    pidfd, container_id = None, ""
    while True:
        said, files, _, _ = socket.recv_fds(line, 1, 1)
        pidfd = files[0] if files else pidfd
        if said == _DONE:
            os._exit(0)
        if said == _CONTAINER:
            container_id = line.recv(_ID_BYTES, socket.MSG_WAITALL).decode().strip()
        if not said:
            break
    end(pidfd)
    if pidfd is None:
        end_by_group(container_id)
    unpin(place)
    remove(engine, container_name)
    os._exit(0)


def end_by_group(container_id: str) -> None:
    """End a box of which no process was told yet, by its control group: Docker may be gone."""
    for folder in Path("/proc").iterdir() if container_id else ():
        with suppress(OSError):
            if folder.name.isdigit() and container_id in (folder / "cgroup").read_text():
                os.kill(int(folder.name), signal.SIGKILL)


def _close_all_but(file: int) -> None:
    """Hold nothing of the caller's: it has to see that the broker's process for it has ended."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.closerange(3, file)
    os.closerange(file + 1, os.sysconf("SC_OPEN_MAX"))


def end(pidfd: int | None) -> None:
    """End a box by its first process; the kernel ends all the others with it."""
    if pidfd is not None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def remove(engine: Engine, container_name: str) -> None:
    """Have Docker forget a container, for as long as it takes to be started anew if it does not answer."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while time.monotonic() < deadline:
        try:
            engine.ask("DELETE", f"/containers/{container_name}", force="1", v="1")
            return
        except EngineError as error:
            if error.status == NOT_FOUND:
                return
        except (OSError, HTTPException):
            pass
        time.sleep(PAUSE_SECONDS)


def watcher() -> str:
    """This process, so that another one with its number is not taken for it."""
    return f"{os.getpid()}.{_birth(str(os.getpid()))}"


def sweep(engine: Engine) -> None:
    """Remove what is left of boxes whose watcher and guard were both killed."""
    for place in pinned():
        if not _lives(place):
            unpin(place)
    for container in engine.ask("GET", "/containers/json", all="1", filters=f'{{"label":["{LABEL}"]}}') or ():
        if not _lives(container["Labels"][LABEL]):
            with suppress(EngineError):
                engine.ask("DELETE", f"/containers/{container['Id']}", force="1", v="1")


def _lives(watcher_name: str) -> bool:
    pid, _, birth = watcher_name.partition(".")
    return _birth(pid) == birth


def _birth(pid: str) -> str | None:
    """When a process began, in ticks of the machine's clock; None when it has ended."""
    try:
        fields = Path("/proc", pid, "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
