"""The owner's end of a keeper (boxes.keeper): starts it with an order, tells it wishes, and hears of the end."""

from __future__ import annotations

import errno
import json
import os
import pkgutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from boxes.box import STREAMS, BoxError, Ended, Program, Use
from boxes.keeper import descendants
from boxes.use import NOTHING, not_less, of_children

PIECE_BYTES = 1 << 16
LAST_WORDS_SECONDS = 10.0
"""How long the output of a program that has ended may stay open: only what its keeper could not end holds it."""
_PYTHON = (sys.executable, "-I", "-S", "-X", "utf8", "-c")


class Keeping:
    """A program and its keeper, from the start of both; `pid` is the keeper's."""

    def __init__(self, program: Program, terminal: int | None = None) -> None:
        """Start both. BoxError when the program cannot be started, OSError when this machine cannot start it now.

        `terminal` is the program's end of one, in place of the streams that `stream` has otherwise.
        """
        self._wishing = threading.Lock()
        self._counting = threading.Lock()
        self._used = NOTHING
        self._processes: list[int] = []
        self._has_ended = False
        told, report = os.pipe()
        output = subprocess.PIPE if terminal is None else subprocess.DEVNULL
        try:
            self._keeper = subprocess.Popen(
                [*_PYTHON, _keepers_text()],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                bufsize=0,
                env={},
                pass_fds=[report, *program.descriptors, *([] if terminal is None else [terminal])],
            )
        finally:
            os.close(report)
        self.pid = self._keeper.pid
        self._told = os.fdopen(told, "rb")
        self._order(program, report, terminal)
        first = self._next_report()
        if "started" not in first:
            self._let_go()
            raise _refusal(program, first)

    def stream(self, name: str) -> Any:
        """What the program prints, by a name in STREAMS; unbuffered, and the caller's to close."""
        return getattr(self._keeper, name)

    def wish(self, what: bytes) -> None:
        """Tell the keeper; one that has ended needs to hear nothing any more."""
        with self._wishing, suppress(BrokenPipeError, ValueError):
            left = memoryview(what)
            while left:
                left = left[_pipe(self._keeper.stdin).write(left) :]

    def use(self) -> Use:
        """What the keeper, the program and all that came of it have used; any thread may ask, also after the end."""
        with self._counting:
            if not self._has_ended:
                self._processes = descendants(self.pid)
                self._used = not_less(of_children(self.pid, self._processes), self._used)
            return self._used

    def processes(self) -> list[int]:
        """The program and all that came of it, as the last look by `use` has found them; none after the end."""
        return self._processes

    def wait(self) -> Ended | None:
        """How the program ended, once it has; None when the keeper was killed, which takes the program along."""
        told = self._next_report()
        with self._counting:
            at_end = replace(NOTHING, **told.get("used", {}))
            self._used = not_less(at_end, self._used)  # of a keeper that was killed, what the last look has found
            self._has_ended, self._processes = True, []
        status = told.get("ended")
        if status is None:
            return None
        code = os.waitstatus_to_exitcode(status)
        return Ended(code) if code >= 0 else Ended(signal=-code)

    def close(self) -> None:
        """Let the keeper go; what has not ended by now, it ends."""
        with self._wishing:
            _pipe(self._keeper.stdin).close()
        self._keeper.wait()
        self._told.close()

    def _order(self, program: Program, report: int, terminal: int | None) -> None:
        order = {
            "argv": list(program.argv),
            "environment": dict(program.environment),
            "folder": str(program.folder),
            "report": report,
            "terminal": terminal,
            "descriptors": list(program.descriptors),
        }
        self.wish(json.dumps(order).encode() + b"\n")

    def _next_report(self) -> Mapping[str, Any]:
        """What the keeper tells next; nothing when it has ended without a word."""
        line = self._told.readline()
        found: Mapping[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        return found

    def _let_go(self) -> None:
        """Of a keeper whose program does not run."""
        for name in STREAMS:
            if stream := self.stream(name):
                stream.close()
        self.close()


def _keepers_text() -> str:
    """The source of the keeper, which may lie in a zip."""
    found = pkgutil.get_data("boxes", "keeper.py")
    if found is None:
        raise FileNotFoundError(errno.ENOENT, "the code is not complete", "boxes/keeper.py")
    return found.decode()


def _pipe(pipe: IO[bytes] | None) -> Any:
    """The keeper's input, which there is; unbuffered, so that `write` tells how much it took."""
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
        return BoxError(f"{name} cannot be started", remedy="it is not a program of this machine and has no line #!")
    if why == errno.E2BIG:
        return BoxError(f"{name} cannot be started", remedy="its arguments and variables are longer than Linux allows")
    if "refused" in told and why is None:
        return BoxError(f"{name} cannot be started", remedy=str(told["said"]))
    return OSError(why or errno.ESRCH, str(told.get("said", "what keeps the program has ended")), name)
