"""A box of plain processes: the program sees all that its user sees on this machine.

Memory and cores are held by whatever holds the owner, which is YARN's container: the program is among its processes.
"""

from __future__ import annotations

import errno
import json
import os
import pkgutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, ClassVar

from boxes.box import STREAMS, Box, BoxError, Ended, OnOutput, Program, Use
from boxes.keeper import HARDLY, SOFTLY
from boxes.use import of_children

PIECE_BYTES = 1 << 16
LAST_WORDS_SECONDS = 10.0
"""How long the output of a program that has ended may stay open: only what its keeper could not end holds it."""
_PYTHON = (sys.executable, "-I", "-S", "-X", "utf8", "-c")


class ProcessBox(Box):
    """Runs a program as a child of a keeper (boxes.keeper), which ends all of it when the owner or the program ends."""

    shows_machine: ClassVar[bool] = True

    def __init__(self) -> None:
        self._ended = Ended(signal=signal.SIGKILL)
        self._done = threading.Event()
        self._wishing = threading.Lock()

    def start(self, program: Program, on_output: OnOutput) -> None:
        """Start the keeper, and by it the program."""
        told, report = os.pipe()
        try:
            self._keeper = subprocess.Popen(
                [*_PYTHON, _keepers_text()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={},
                pass_fds=(report,),
            )
        finally:
            os.close(report)
        self._told = os.fdopen(told, "rb")
        self._order(program, report)
        first = self._next_report()
        if "started" not in first:
            for stream in STREAMS:
                _stream(getattr(self._keeper, stream)).close()
            self._give_up()
            raise _refusal(program, first)
        readers = [self._read(stream, on_output) for stream in STREAMS]
        threading.Thread(target=self._follow, args=(readers,), name="box", daemon=True).start()

    def wait(self, seconds: float | None = None) -> Ended | None:
        """As any box."""
        return self._ended if self._done.wait(seconds) else None

    def use(self) -> Use | None:
        """By the processes below the keeper."""
        return None if self._done.is_set() else of_children(self._keeper.pid)

    def end(self, grace: float) -> Ended:
        """The program and all its processes get the signals."""
        self._wish(SOFTLY)
        if not self._done.wait(grace):
            self._wish(HARDLY)
            self._done.wait()
        return self._ended

    def _order(self, program: Program, report: int) -> None:
        order = {
            "argv": list(program.argv),
            "environment": dict(program.environment),
            "folder": str(program.folder),
            "report": report,
        }
        self._wish(json.dumps(order).encode() + b"\n")

    def _wish(self, what: bytes) -> None:
        """Tell the keeper; one that has ended needs to hear nothing any more."""
        with self._wishing, suppress(BrokenPipeError, ValueError):
            left = memoryview(what)
            while left:
                left = left[_stream(self._keeper.stdin).write(left) :]

    def _next_report(self) -> Mapping[str, Any]:
        """What the keeper tells next; nothing when it has ended without a word."""
        line = self._told.readline()
        found: Mapping[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        return found

    def _read(self, stream: str, on_output: OnOutput) -> threading.Thread:
        source = _stream(getattr(self._keeper, stream))

        def read() -> None:
            with source:
                while piece := source.read(PIECE_BYTES):
                    on_output(stream, piece)

        reader = threading.Thread(target=read, name=stream, daemon=True)
        reader.start()
        return reader

    def _follow(self, readers: list[threading.Thread]) -> None:
        """Until the keeper tells of the end; one that was killed took its program along."""
        status = self._next_report().get("ended")
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            self._ended = Ended(code) if code >= 0 else Ended(signal=-code)
        for reader in readers:
            reader.join(LAST_WORDS_SECONDS)
        self._give_up()
        self._done.set()

    def _give_up(self) -> None:
        """Let the keeper go."""
        with self._wishing:
            _stream(self._keeper.stdin).close()
        self._keeper.wait()
        self._told.close()


def _keepers_text() -> str:
    """The source of the keeper, which may lie in a zip."""
    found = pkgutil.get_data("boxes", "keeper.py")
    if found is None:
        raise FileNotFoundError(errno.ENOENT, "the code is not complete", "boxes/keeper.py")
    return found.decode()


def _stream(pipe: IO[bytes] | None) -> Any:
    """A pipe of the keeper, all of which there are; unbuffered, so that `write` tells how much it took."""
    return pipe


def _refusal(program: Program, told: Mapping[str, Any]) -> Exception:
    """Why a program does not run: a BoxError, or an OSError when it is not to blame."""
    name, why = program.argv[0], told.get("refused")
    found = program.folder / name
    if why in (errno.ENOENT, errno.ENOTDIR) and "/" in name and found.is_file():
        return BoxError(f"{name} cannot be started", remedy="the program that its first line names is not there")
    if why in (errno.ENOENT, errno.ENOTDIR):
        beside = f"write ./{name} for the file that came with it" if "/" not in name and found.is_file() else ""
        return BoxError(f"there is no program {name}", remedy=beside)
    if why == errno.EACCES:
        is_folder = found.is_dir() or Path(name).is_dir()
        return BoxError(f"{name} is a folder" if is_folder else f"{name} is not executable")
    if why == errno.ENOEXEC:
        return BoxError(
            f"{name} cannot be started", remedy="it is no program of this machine, and has no line #! either"
        )
    if why == errno.E2BIG:
        return BoxError(f"{name} cannot be started", remedy="its arguments and variables are longer than Linux allows")
    if "refused" in told and why is None:
        return BoxError(f"{name} cannot be started", remedy=str(told["said"]))
    return OSError(why or errno.ESRCH, str(told.get("said", "what keeps the program has ended")), name)
