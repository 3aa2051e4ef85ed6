"""A box of plain processes: the program sees all that its user sees on this machine.

Memory and cores are held by whatever holds the owner, which is YARN's container: the program is among its processes.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

from boxes.box import STREAMS, Box, BoxError, Ended, OnOutput, Program, Use
from boxes.keeper import HARDLY, SOFTLY
from boxes.keeping import LAST_WORDS_SECONDS, PIECE_BYTES, Keeping
from boxes.mounting import how_ended, with_described, with_parts
from boxes.network import NetworkUse
from boxes.process_terminal import ProcessTerminal
from boxes.terminal import OnTerminal, Size, Terminal
from boxes.use import NOTHING, together


class _Terminals(NamedTuple):
    """Those of a box, and what has been used by those that are let go since they have ended."""

    opened: Sequence[ProcessTerminal] = ()
    past: Use = NOTHING

    def uses(self) -> list[Use]:
        return [self.past, *(one.use() for one in self.opened)]

    def processes(self) -> list[int]:
        return [pid for one in self.opened for pid in one.processes()]

    def with_another(self, another: ProcessTerminal) -> _Terminals:
        """One more; those that have ended are let go."""
        ended = [one for one in self.opened if one.wait(0) is not None]
        going_on = [one for one in self.opened if one not in ended]
        return _Terminals([*going_on, another], together([self.past, *(one.use() for one in ended)]))


class ProcessBox(Box):
    """Runs a program as a child of a keeper (boxes.keeper), which ends all of it when the owner or the program ends."""

    shows_machine: ClassVar[bool] = True

    def __init__(self) -> None:
        self._ended = Ended(signal=signal.SIGKILL)
        self._done = threading.Event()
        self._opening = threading.Lock()
        self._terminals: _Terminals | None = _Terminals()
        self._network = NetworkUse()

    def start(self, program: Program, on_output: OnOutput) -> None:
        """Start the keeper, and by it the program."""
        self._program = with_described(program)
        with with_parts(self._program) as ready:
            self._kept = Keeping(ready)
        readers = [self._read(stream, on_output) for stream in STREAMS]
        threading.Thread(target=self._follow, args=(readers,), name="box", daemon=True).start()

    def wait(self, seconds: float | None = None) -> Ended | None:
        """As any box."""
        return self._ended if self._done.wait(seconds) else None

    def use(self) -> Use | None:
        """By the processes below the keepers of the program and of the terminals."""
        terminals = self._terminals
        if terminals is None:
            return None
        used = together([self._kept.use(), *terminals.uses()])
        return self._network.total(used, [*self._kept.processes(), *terminals.processes()])

    def end(self, grace: float) -> Ended:
        """The program and all its processes get the signals."""
        self._kept.wish(SOFTLY)
        if not self._done.wait(grace):
            self._kept.wish(HARDLY)
            self._done.wait()
        return self._ended

    def open_terminal(self, argv: Sequence[str], size: Size, on_output: OnTerminal) -> Terminal:
        """By a keeper of its own, which is among the processes of the owner, too."""
        with self._opening:
            if self._terminals is None:
                raise BoxError("the program has ended")
            with with_parts(replace(self._program, argv=argv)) as ready:
                opened = ProcessTerminal(ready, size, on_output)
            self._terminals = self._terminals.with_another(opened)
        return opened

    def _read(self, stream: str, on_output: OnOutput) -> threading.Thread:
        source = self._kept.stream(stream)

        def read() -> None:
            with source:
                while piece := source.read(PIECE_BYTES):
                    on_output(stream, piece)

        reader = threading.Thread(target=read, name=stream, daemon=True)
        reader.start()
        return reader

    def _follow(self, readers: list[threading.Thread]) -> None:
        """Until the keeper tells of the end."""
        self._ended = how_ended(self._program, self._kept.wait() or self._ended)
        self._end_terminals()
        for reader in readers:
            reader.join(LAST_WORDS_SECONDS)
        self._kept.close()
        self._done.set()

    def _end_terminals(self) -> None:
        with self._opening:
            terminals, self._terminals = self._terminals.opened if self._terminals else (), None
        for terminal in terminals:
            terminal.end()
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        for terminal in terminals:
            terminal.wait_for_end(max(0.0, deadline - time.monotonic()))
