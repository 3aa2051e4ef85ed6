"""One box from its start to its end."""

from __future__ import annotations

import os
import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from boxes.broker import group
from boxes.broker.devices import bind_mounts, device_files, find_edits, variables
from boxes.broker.engine import Engine, EngineError
from boxes.broker.frames import HEADER, SOFTLY, STDERR, STDOUT, USE, report
from boxes.broker.guard import LABEL, Guard, end, remove, watcher
from boxes.broker.order import Refusal, Run
from boxes.broker.pinned import pin, unpin
from boxes.broker.settings import Settings

LAST_WORDS_SECONDS = 10.0
"""How long Docker may take to bring the last that a box printed, and to tell how it ended."""
MOST_PLACES = 64
"""Folders of programs that are looked through: Docker mounts the image for each."""
BUSY_SECONDS = 2.0
"""How long Docker may take for a call while the box runs: meanwhile nobody sees that the caller has hung up."""
PAUSE_SECONDS = 0.01
PIECE_BYTES = 1 << 16
MB = 1 << 20
_MODE_FOLDER, _MODE_LINK, _EXECUTABLE = 1 << 31, 1 << 27, 0o111
"""Bits of a file's mode as Docker tells it, which are Go's."""


@dataclass(frozen=True)
class Caller:
    """Who asks: its connection, its user, its folder by name and as an open file."""

    connection: socket.socket
    uid: int
    gid: int
    folder: str
    file: int


class Running:
    """The container of one order. `run` returns once nothing of it is left, or only Docker can tell."""

    def __init__(self, engine: Engine, settings: Settings, order: Run, caller: Caller) -> None:
        self._engine = engine
        self._busy = Engine(settings.docker, BUSY_SECONDS)
        self._settings = settings
        self._order = order
        self._caller = caller
        self._edits = find_edits(order.devices, settings.cdi)
        self._name = f"nodewise-{token_hex(8)}"
        self._pidfd: int | None = None

    def run(self) -> None:
        """Errors are Refusal, EngineError and OSError; then the guard removes what is left once this process ends."""
        guard = Guard(self._engine, self._name)
        try:
            output = self._start(guard)
            self._caller.connection.sendall(report({"started": self._name}))
            self._follow(output, guard.line)
            self._caller.connection.sendall(report(self._ended()))
        except BaseException:
            end(self._pidfd)
            if guard.has_ended():
                unpin(watcher())
                remove(self._engine, self._name)
            raise
        remove(self._engine, self._name)
        guard.dismiss()

    def _start(self, guard: Guard) -> socket.socket:
        """Start the program; what it prints."""
        body = self._body(pin(self._caller.file, watcher()))
        self._container = str(self._engine.ask("POST", "/containers/create", body, name=self._name)["Id"])
        guard.tell_container(self._container)
        self._check_program()
        output = self._engine.attach(self._name)
        self._engine.ask("POST", f"/containers/{self._name}/start")
        unpin(watcher())
        self._pid = pid = self._state()["Pid"]
        with suppress(ProcessLookupError):  # it has ended already
            self._pidfd = os.pidfd_open(pid) if pid else None
        if self._pidfd is not None and self._state()["Pid"] != pid:
            self._pidfd = None  # it ended before, and this is another process
        if self._pidfd is not None:
            guard.tell_process(self._pidfd)
        return output

    def _follow(self, output: socket.socket, guard: socket.socket) -> None:
        """Pass on what the box prints and do as its caller wishes, until it has ended."""
        poll = select.poll()
        for file in (output, self._caller.connection, guard, self._pidfd):
            if file is not None:
                poll.register(file, select.POLLIN | select.POLLRDHUP)
        relay = _Relay(output, self._caller.connection)
        is_open, deadline = True, float("inf") if self._pidfd is not None else time.monotonic() + LAST_WORDS_SECONDS
        while is_open or deadline == float("inf"):
            for file, _ in poll.poll(max(0, deadline - time.monotonic()) * 1000 if deadline < float("inf") else None):
                if file == output.fileno() and not relay.pass_on():
                    is_open = False
                    poll.unregister(output)
                    self._check_docker()
                elif file == self._pidfd:
                    poll.unregister(file)
                    deadline = time.monotonic() + LAST_WORDS_SECONDS
                elif file == guard.fileno():
                    raise ConnectionError("the guard of the box has ended")
                elif file == self._caller.connection.fileno():
                    self._obey()
            if time.monotonic() > deadline:
                return

    def _check_docker(self) -> None:
        """OSError if the output has an end because Docker has one; a box that has ended can wait for the answer."""
        has_ended = self._pidfd is None or bool(select.select([self._pidfd], [], [], 0)[0])
        (self._engine if has_ended else self._busy).ask("GET", "/_ping")

    def _obey(self) -> None:
        """A wish of the caller; OSError when it has hung up."""
        wishes = self._caller.connection.recv(PIECE_BYTES)
        if not wishes:
            raise ConnectionError("the caller has hung up")
        if wishes.strip(SOFTLY + USE):
            end(self._pidfd)
            return
        used = None
        with suppress(EngineError, OSError, KeyError, TypeError):  # it has ended meanwhile, or Docker is busy
            if SOFTLY in wishes:
                self._busy.ask("POST", f"/containers/{self._name}/kill", signal="SIGTERM")
            if USE in wishes:
                used = self._use()
        if used:
            self._caller.connection.sendall(report({"use": used, "pids": self._pids()}))

    def _use(self) -> dict[str, float]:
        """What the box has used, as the control groups count it."""
        told = self._busy.ask("GET", f"/containers/{self._name}/stats", stream="0", **{"one-shot": "1"})
        memory, disk = told["memory_stats"], {"read": 0, "write": 0}
        for entry in told["blkio_stats"].get("io_service_bytes_recursive") or ():
            operation = entry["op"].lower()
            disk[operation] = disk.get(operation, 0) + entry["value"]
        cached = memory.get("stats", {}).get("total_inactive_file", memory.get("stats", {}).get("inactive_file", 0))
        return {
            "cpu_seconds": told["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
            "memory_bytes": max(0, memory.get("usage", 0) - cached),
            "read_bytes": disk["read"],
            "written_bytes": disk["write"],
            "processes": told["pids_stats"].get("current", 0),
        }

    def _pids(self) -> list[int] | None:
        """The processes of the box, whose network its caller can look at; None when they cannot be told."""
        with suppress(OSError):
            return group.processes(self._pid, self._container)
        return None

    def _ended(self) -> dict[str, Any]:
        """How the program ended."""
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        while (state := self._state())["Running"]:
            if time.monotonic() > deadline:  # what it says then is no exit code
                raise ConnectionError("Docker does not tell how the box has ended")
            time.sleep(PAUSE_SECONDS)
        return {"ended": state["ExitCode"], "out_of_memory": state["OOMKilled"]}

    def _state(self) -> dict[str, Any]:
        found: dict[str, Any] = self._engine.ask("GET", f"/containers/{self._name}/json")["State"]
        return found

    def _check_program(self) -> None:
        """Refusal unless the image has the program; what lies in the caller's folder the caller knows."""
        name = self._order.argv[0]
        if "/" in name:
            path = os.path.normpath(Path(self._caller.folder, name))
            if path.startswith(self._caller.folder + "/"):
                return
            found = self._engine.stat(self._name, path)
        else:
            there = (self._engine.stat(self._name, f"{place}/{name}") for place in self._path())
            found = next(filter(None, there), None)
        if found is None:
            raise Refusal(f"there is no program {name} in the image")
        if found["mode"] & _MODE_FOLDER:
            raise Refusal(f"{name} is a folder")
        if not found["mode"] & (_MODE_LINK | _EXECUTABLE):
            raise Refusal(f"{name} is not executable")

    def _path(self) -> list[str]:
        """The folders of programs: of the order's environment, or of the image's."""
        variables = self._engine.ask("GET", f"/containers/{self._name}/json")["Config"]["Env"] or []
        found = [one.partition("=")[2] for one in variables if one.startswith("PATH=")]
        places = [place for place in found[-1].split(":") if place.startswith("/")] if found else ["/usr/bin", "/bin"]
        return places[:MOST_PLACES]

    def _of_image(self, name: str) -> Any:
        """What the image says of boxes of its own; None if nothing."""
        return self._engine.ask("GET", f"/images/{self._order.image}/json")["Config"].get(name)

    def _volumes(self) -> list[str]:
        """What the image wants to have on disks of the machine; the box has it in its memory."""
        return sorted(self._of_image("Volumes") or ())

    def _body(self, folder: str) -> dict[str, Any]:
        """The container, as Docker's API has it."""
        order, caller, settings = self._order, self._caller, self._settings
        return {
            "Image": order.image,
            "Entrypoint": [],
            "Cmd": list(order.argv),
            "Env": variables(order.environment, self._of_image("Env") or (), self._edits),
            "WorkingDir": caller.folder,
            "User": f"{caller.uid}:{caller.gid}",
            "Labels": {LABEL: watcher()},
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": {
                "Mounts": [
                    {"Type": "bind", "Source": folder, "Target": caller.folder},
                    *({"Type": "tmpfs", "Target": path} for path in self._volumes()),
                    *bind_mounts(self._edits),
                ],
                "Devices": device_files(self._edits),
                "ReadonlyRootfs": True,
                "Tmpfs": {"/tmp": "rw,nosuid,nodev,mode=1777"},  # noqa: S108 the box's own
                "ShmSize": order.memory_mb * MB // 2,
                "Memory": order.memory_mb * MB,
                "MemorySwap": order.memory_mb * MB,
                "NanoCpus": min(order.vcores, os.cpu_count() or 1) * 10**9,
                "PidsLimit": settings.most_processes,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "NetworkMode": "host",
                "LogConfig": {"Type": "none"},
                "Init": True,
                "CgroupParent": settings.cgroup_parent,
            },
        }


class _Relay:
    """Passes whole frames on, so that what the broker itself tells always stands between two."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self._source = source
        self._target = target
        self._left = bytearray()

    def pass_on(self) -> bool:
        """What has come; False at the end."""
        try:
            piece = self._source.recv(PIECE_BYTES)
        except ConnectionError:
            return False
        self._left += piece
        if whole := self._whole():
            self._target.sendall(self._left[:whole])
            del self._left[:whole]
        return bool(piece)

    def _whole(self) -> int:
        """How many of the bytes that are there are whole frames."""
        begin = 0
        while len(self._left) >= begin + HEADER.size:
            kind, length = HEADER.unpack_from(self._left, begin)
            if kind not in (STDOUT, STDERR):
                raise ConnectionError("Docker's output of the box is not what it should be")
            end_of_frame = begin + HEADER.size + length
            if end_of_frame > len(self._left):
                break
            begin = end_of_frame
        return begin
