"""`nodewise task shell`: a terminal in the box of a task that runs."""

from __future__ import annotations

import os
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path
from queue import Full, Queue
from typing import Any

import click

from infosvc.wire.errors import InfoError
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.terminal_text import plain
from infosvc.wire.tunnel.lines import Line
from jobs.commands.service_options import service_options
from jobs.commands.task.task_tunnel import UserTunnel

SHELL = ("sh", "-c", "command -v bash > /dev/null && exec bash; exec sh")
"""Bash if the box has it."""
LEAVE = b"\x1d"
"""Ctrl-], which ends the shell whatever runs there."""
INTERRUPT = b"\x03"
"""Ctrl-C, which ends it while nothing has come from there: no program has to hear of it yet."""
END_OF_LINE = b"\n"
END_OF_INPUT = b"\x04"
"""Ctrl-D, for input that is no terminal."""
USUAL = (80, 24)
"""Columns and rows of what is no terminal."""
AGAIN_SECONDS = (0.5, 1.0, 2.0, 4.0)
"""Between ends of the input; the last again and again."""
PIECE_BYTES = 1 << 12
MOST_PIECES = 1 << 8
"""That were read here and wait for the program there to read them."""


@click.command()
@click.argument("task_id")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[PROGRAM [ARGUMENT]...]")
@service_options
@click.pass_obj
def shell(home: Path, /, service: ServiceAddress, task_id: str, argv: Sequence[str]) -> None:
    """Open a terminal in the box of a task that runs: a shell, or another program. Ctrl-] ends it.

    It has the folder, the variables and the limits of the task, and ends with the task's program. The exit status is
    that of the shell.

    \b
    Example:
      nodewise task shell task_0f1e2d3c4b5a6978
      nodewise task shell task_0f1e2d3c4b5a6978 -- tail -f train.log
    """
    for stream, name, such in ((sys.stdin, "input", "</dev/null"), (sys.stdout, "output", ">/dev/null")):
        if stream is None:
            raise click.UsageError(f"standard {name} is closed: a shell needs one, such as {such}")
    with UserTunnel(service.client(home), task_id) as tunnel:
        if sys.stdin.isatty():
            click.echo(plain(f"waiting for the runner of {task_id}; Ctrl-] ends the shell"), err=True)
        with _raw_input():
            ended = _Session(tunnel, argv or SHELL).run()
    if "why" in ended:
        raise click.ClickException(plain(ended["why"]))
    sys.exit(int(ended.get("code") or 0))


class _Session:
    """What is typed here goes there, and what is written there is shown here."""

    def __init__(self, tunnel: UserTunnel, argv: Sequence[str]) -> None:
        self._how: Mapping[str, Any] | None = None
        self._is_terminal = sys.stdin.isatty()
        self._has_come = False
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        columns, rows = _size()
        asked = {"terminal": {"argv": list(argv), "columns": columns, "rows": rows}}
        signal.signal(signal.SIGWINCH, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._line = tunnel.open(asked, self)

    def run(self) -> Mapping[str, Any]:
        """Until the program there has ended, or Ctrl-]; how it ended."""
        typing = threading.Thread(target=self._type, name="keys", daemon=True)
        typing.start()
        while self._how is None:
            os.read(self._woken, PIECE_BYTES)
            with suppress(InfoError):  # how it ended comes after that
                self._line.tell_size(*_size())
        return self._how

    def take(self, content: bytes) -> None:
        """Show what is written there; OSError when nobody looks any more."""
        self._has_come = True
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()

    def hear_size(self, columns: int, rows: int) -> None:
        """The terminal is here."""

    def hear_end(self) -> None:
        """What was written there is still shown."""

    def end(self, how: Mapping[str, Any]) -> None:
        """The program there has ended, or the tunnel, or who types here has left."""
        self._how = how
        os.write(self._wake, b"\0")

    def _type(self) -> None:
        """Send what is typed."""
        keys, last = _Keys(self._line, may_wait=not self._is_terminal), END_OF_LINE
        while typed := os.read(sys.stdin.fileno(), PIECE_BYTES):
            if self._is_terminal and (LEAVE in typed or (INTERRUPT in typed and not self._has_come)):
                self.end({})  # the program there ends with the tunnel
                return
            keys.put(typed)
            last = typed[-1:]
        if last != END_OF_LINE:  # behind half a line, Ctrl-D would be no end
            keys.put(END_OF_LINE)
        keys.put(b"")


class _Keys:
    """Sends in a thread of its own, which waits while the program there reads nothing, and Ctrl-D after the last."""

    def __init__(self, line: Line, may_wait: bool) -> None:
        """`may_wait` tells whether `put` may; else nobody would hear the keys that end the shell."""
        self._line = line
        self._may_wait = may_wait
        self._typed: Queue[bytes] = Queue(MOST_PIECES)
        threading.Thread(target=self._send, name="sending keys", daemon=True).start()

    def put(self, typed: bytes) -> None:
        """Send this next, nothing for the end. Where there is no room for it and it may not wait, a bell rings."""
        try:
            self._typed.put(typed, block=self._may_wait)
        except Full:
            click.echo("\a", nl=False, err=True)

    def _send(self) -> None:
        with suppress(InfoError):
            while typed := self._typed.get():
                self._line.send(typed)
            for pause in chain(AGAIN_SECONDS, repeat(AGAIN_SECONDS[-1])):  # who starts later has not seen the first
                self._line.send(END_OF_INPUT)
                time.sleep(pause)


def _size() -> tuple[int, int]:
    """Columns and rows of the terminal here."""
    try:
        columns, rows = os.get_terminal_size(sys.stdin.fileno())
    except OSError:
        columns, rows = 0, 0
    return columns or USUAL[0], rows or USUAL[1]


@contextmanager
def _raw_input() -> Iterator[None]:
    """Leave all keys to the terminal there while the block runs."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # by which the keys come back, too
    tty.setraw(sys.stdin, termios.TCSADRAIN)  # keys that were typed already are kept
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
