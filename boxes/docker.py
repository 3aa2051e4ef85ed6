"""A box of Docker: the program sees an image, one folder of this machine, and nothing else of its files.

Docker runs it for the broker of boxes (boxes.broker), which an operator has put on this machine.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from boxes.asking import ask, next_frame
from boxes.box import Box, BoxError, Ended, Image, OnOutput, Program, Use
from boxes.broker.frames import HARDLY, REPORT, SOFTLY, STDOUT, USE
from boxes.docker_terminal import DockerTerminal
from boxes.network import NetworkUse
from boxes.terminal import OnTerminal, Size, Terminal
from boxes.wished import with_wished

USE_SECONDS = 10.0
_BY_SIGNAL = range(129, 129 + 64)
"""Exit codes by which Docker tells that a signal ended a program."""
_NO_START = re.compile(rb"\[FATAL tini \(\d+\)\] exec .* failed: (.*)\n")
"""The first words of Docker's init when it cannot start a program."""
_BRIEF = 4096


class DockerBox(Box):
    """Runs a program in an image."""

    shows_machine: ClassVar[bool] = False

    def __init__(self) -> None:
        self._ended: Ended | None = None
        self._lost = "the broker of boxes has ended"
        self._first_words = b""
        self._done = threading.Event()
        self._wishing = threading.Lock()
        self._use: tuple[Use, Sequence[int] | None] | None = None
        self._network = NetworkUse()
        self._is_use_told = threading.Event()

    def start(self, program: Program, on_output: OnOutput) -> None:
        """Have the broker start it, once Docker has the image."""
        image = program.image
        if image is None:
            raise BoxError("a box of Docker needs an image", remedy="name one by --image")
        _check_program(program)
        self._program = program = with_wished(program, _bring(image, program.folder.parent))
        order: dict[str, Any] = {
            "do": "run",
            "image": image.id,
            "argv": list(program.argv),
            "environment": dict(program.environment),
            "memory_mb": program.limits.memory_mb,
            "vcores": program.limits.vcores,
        }
        if program.devices:  # a broker of an earlier version knows none
            order["devices"] = list(program.devices)
        self._connection, told = ask(order, program.folder)
        self._container = str(told["started"])
        threading.Thread(target=self._follow, args=(on_output,), name="box", daemon=True).start()

    def wait(self, seconds: float | None = None) -> Ended | None:
        """As any box."""
        return self._result() if self._done.wait(seconds) else None

    def use(self) -> Use | None:
        """As Docker counts it, and the network by the processes that the broker names."""
        self._is_use_told.clear()  # before it is asked whether the program has ended: its end sets this, too
        if self._done.is_set():
            return None
        self._wish(USE)
        if not self._is_use_told.wait(USE_SECONDS) or self._done.is_set() or self._use is None:
            return None
        used, pids = self._use
        return used if pids is None else self._network.total(used, pids)

    def end(self, grace: float) -> Ended:
        """The program gets SIGTERM, all its processes SIGKILL."""
        self._wish(SOFTLY)
        if not self._done.wait(grace):
            self._wish(HARDLY)
            self._done.wait()
        return self._result()

    def open_terminal(self, argv: Sequence[str], size: Size, on_output: OnTerminal) -> Terminal:
        """In the same container; a program that the image does not have says so on the terminal."""
        if self._done.is_set():
            raise BoxError("the program has ended")
        return DockerTerminal(self._container, argv, size, on_output)

    def _result(self) -> Ended:
        if self._ended is None:
            raise OSError(errno.ECONNABORTED, self._lost)
        return self._ended

    def _wish(self, what: bytes) -> None:
        with self._wishing, suppress(OSError):  # it has ended already
            self._connection.sendall(what)

    def _follow(self, on_output: OnOutput) -> None:
        try:
            with self._connection:
                while self._ended is None and (frame := next_frame(self._connection)):
                    self._take(*frame, on_output)
        finally:
            self._done.set()
            self._is_use_told.set()  # nothing will be told

    def _take(self, kind: int, content: bytes, on_output: OnOutput) -> None:
        if kind == REPORT:
            self._hear(json.loads(content))
        elif kind == STDOUT:
            on_output("stdout", content)
        else:
            self._first_words = (self._first_words + content)[:_BRIEF]
            on_output("stderr", content)

    def _hear(self, told: Mapping[str, Any]) -> None:
        if "ended" in told:
            self._ended = self._how(told["ended"], told["out_of_memory"])
        elif "use" in told:
            self._use = Use(**told["use"]), told.get("pids")  # a broker of an earlier version names none
            self._is_use_told.set()
        else:
            self._lost = str(told.get("failed", told))

    def _how(self, code: int, is_out_of_memory: bool) -> Ended:
        if code in _BY_SIGNAL:
            number = code - 128
            needed_more = is_out_of_memory and number == signal.SIGKILL
            return Ended(
                signal=number, said=f"it needed more than {self._program.limits.memory_mb} MB" if needed_more else ""
            )
        no_start = _NO_START.fullmatch(self._first_words) if code in (126, 127) else None
        return Ended(code, said=no_start[1].decode(errors="replace") if no_start else "")


def _check_program(program: Program) -> None:
    """BoxError when the program is one of its own folder and cannot be started; the broker knows of the image's."""
    name = program.argv[0]
    found = program.folder / name
    if any("\0" in one for one in [*program.argv, *program.environment, *program.environment.values()]):
        raise BoxError(f"{name} cannot be started", remedy="an argument or a variable holds a NUL character")
    if "/" not in name or not Path(os.path.normpath(found)).is_relative_to(program.folder):
        return
    if not found.exists():
        raise BoxError(f"there is no program {name}")
    if found.is_dir():
        raise BoxError(f"{name} is a folder")
    if not os.access(found, os.X_OK):
        raise BoxError(f"{name} is not executable")


def _bring(image: Image, folder: Path) -> Sequence[str]:
    """Let Docker have an image; if it comes as an archive, that lies in `folder` for a while.

    It tells the names of the devices that boxes may have; a broker of an earlier version tells none.
    """
    connection, told = ask({"do": "look", "image": image.id})
    connection.close()
    devices: Sequence[str] = told.get("devices", ())
    if told["there"]:
        return devices
    served = image.serve() if told.get("pulls") else None  # a broker of an earlier version only loads
    if served is None:
        _load(image, folder)
        return devices
    with served as place:
        connection, _ = ask({"do": "pull", "image": image.id, **asdict(place)})
        connection.close()
    return devices


def _load(image: Image, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="image-", dir=folder) as place:
        archive = Path(place, "image.tar")
        image.fetch(archive)
        connection, _ = ask({"do": "load", "image": image.id}, archive)
        connection.close()
