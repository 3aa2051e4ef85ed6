"""A terminal in a box of plain processes: a pseudo-terminal of this machine."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
import threading
from contextlib import suppress
from dataclasses import replace

from boxes.box import Program, Use
from boxes.broker.frames import TERM
from boxes.keeper import HARDLY
from boxes.keeping import PIECE_BYTES, Keeping
from boxes.terminal import OnTerminal, Size, Terminal

FULL_SECONDS = 0.02
"""Between two attempts to write what the program has no room for yet."""
KILLED = 137
"""The exit code of one whose keeper was killed."""


class ProcessTerminal(Terminal):
    """Runs a program as the leader of a session, under a keeper of its own."""

    def __init__(self, program: Program, size: Size, on_output: OnTerminal) -> None:
        """Start it; errors are those of a box."""
        self._ours, its = os.openpty()
        try:
            self._set_size(size)
            variables = {**program.environment, "TERM": TERM}
            self._kept = Keeping(replace(program, environment=variables), its)
        except BaseException:
            os.close(self._ours)
            raise
        finally:
            os.close(its)
        self._code = KILLED
        self._is_closed = False
        self._has_ended, self._done = threading.Event(), threading.Event()
        self._using = threading.Lock()
        os.set_blocking(self._ours, False)
        reader = threading.Thread(target=self._read, args=(on_output,), name="terminal", daemon=True)
        reader.start()
        threading.Thread(target=self._follow, args=(reader,), name="terminal's end", daemon=True).start()

    def write(self, typed: bytes) -> None:
        """As any terminal."""
        left = memoryview(typed)
        while left and not self._has_ended.is_set():
            with suppress(BlockingIOError):
                left = left[self._write_now(left) :]
                continue
            self._has_ended.wait(FULL_SECONDS)

    def resize(self, size: Size) -> None:
        """As any terminal; the kernel sends SIGWINCH."""
        with self._using, suppress(OSError):
            if not self._is_closed:
                self._set_size(size)

    def wait(self, seconds: float | None = None) -> int | None:
        """As any terminal."""
        return self._code if self._done.wait(seconds) else None

    def wait_for_end(self, seconds: float) -> None:
        """Until nothing of it runs, although its output may not be heard yet; at most so many seconds."""
        self._has_ended.wait(seconds)

    def end(self) -> None:
        """As any terminal."""
        self._kept.wish(HARDLY)

    def use(self) -> Use:
        """What its program and all that came of it have used, also after the end."""
        return self._kept.use()

    def processes(self) -> list[int]:
        """Those of it that the last look by `use` has found."""
        return self._kept.processes()

    def _write_now(self, typed: memoryview) -> int:
        """How much of it was taken: all when nobody reads any more. BlockingIOError when there is no room."""
        with self._using:
            if self._is_closed:
                return len(typed)
            try:
                return os.write(self._ours, typed)
            except BlockingIOError:
                raise
            except OSError:  # the program has closed its terminal
                return len(typed)

    def _set_size(self, size: Size) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("4H", size.rows, size.columns, 0, 0))

    def _read(self, on_output: OnTerminal) -> None:
        """Until nobody has the other end any more, which the kernel tells by EIO."""
        looking = select.poll()
        looking.register(self._ours, select.POLLIN)
        with suppress(OSError):
            while looking.poll():
                on_output(os.read(self._ours, PIECE_BYTES))
        with self._using:
            self._is_closed = True
            os.close(self._ours)

    def _follow(self, reader: threading.Thread) -> None:
        if ended := self._kept.wait():
            self._code = ended.code
        self._kept.close()
        self._has_ended.set()
        reader.join()
        self._done.set()
