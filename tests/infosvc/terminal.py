"""A real terminal on which `nodewise` runs, and what it draws there."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

NODEWISE = (sys.executable, "-m", "nodewise")
HOME = "\x1b[H"  # every drawing begins with it
STYLE = re.compile(r"\x1b\[[0-9;]*m")
LAST = "\0"
SHOW_CURSOR, LEAVE_SCREEN = "\x1b[?25h", "\x1b[?1049l"


def settings(url: str) -> dict[str, str]:
    """The environment of a command that asks the service at this address."""
    return {**os.environ, "NODEWISE_URL": url, "NODEWISE_HOME": "/nowhere", "TERM": "xterm"}


class Terminal:
    """A real terminal of some lines with `nodewise` and some words on it."""

    def __init__(self, url: str, *words: str, lines: int = 20) -> None:
        self._ours, self._theirs = pty.openpty()
        self.resize(lines)
        self.settings = termios.tcgetattr(self._theirs)
        self.text = ""
        # A session whose terminal this is, so that Ctrl-C arrives as it does everywhere.
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *NODEWISE, *words],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=settings(url),
        )

    def resize(self, lines: int) -> None:
        """Give it another height."""
        termios.tcsetwinsize(self._theirs, (lines, 100))

    def until(self, fits: Callable[[str], Any]) -> str:
        """The first drawing that fits, of those begun from now on."""
        begun, deadline = len(self.text), time.monotonic() + 60
        while True:
            for drawing in self.text[begun:].split(HOME)[1:-1]:  # the last one may be half there
                if fits(STYLE.sub("", drawing)):
                    return drawing
            assert time.monotonic() < deadline and self.process.poll() is None, self.text[-3000:]
            self._read()

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def ended(self) -> int:
        """Exit status; all of its output has been read then."""
        deadline = time.monotonic() + 60
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text[-3000:]
            self._read()  # else it may wait for ever to write what nobody reads
        while self._read():
            pass
        # What it wrote may still be under way within the kernel: what is written now comes after all of it.
        os.write(self._theirs, LAST.encode())
        while not self.text.endswith(LAST):
            assert time.monotonic() < deadline, self.text[-3000:]
            self._read()
        self.text = self.text.removesuffix(LAST)
        return self.process.returncode

    def left_as_it_was(self) -> bool:
        """The cursor is shown and the screen of before is back, whatever came last."""
        hidden, shown = self.text.rfind("\x1b[?25l"), self.text.rfind(SHOW_CURSOR)
        entered, left = self.text.rfind("\x1b[?1049h"), self.text.rfind(LEAVE_SCREEN)
        return 0 <= hidden < shown and 0 <= entered < left and termios.tcgetattr(self._theirs) == self.settings

    def close(self) -> None:
        """End what runs on it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], 0.2)[0]:
            return False
        with suppress(OSError):
            self.text += os.read(self._ours, 65536).decode(errors="replace")
        return True
