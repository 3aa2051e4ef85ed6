"""The seam for a further program in a box: one that somebody uses by a terminal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from boxes.broker.frames import LONGEST_SIDE

OnTerminal = Callable[[bytes], None]
"""Hears what a program writes to its terminal. It may not raise; while it takes long, the program waits."""


class Size(NamedTuple):
    """How large a terminal is: at least 1, at most LONGEST_SIDE each."""

    columns: int = 80
    rows: int = 24

    def within_bounds(self) -> Size:
        """The nearest that there can be.

        >>> Size(0, 5000).within_bounds()
        Size(columns=1, rows=1000)
        """
        columns, rows = (max(1, min(side, LONGEST_SIDE)) for side in self)
        return Size(columns, rows)


class Terminal(ABC):
    """A program that runs beside the one of the box, within its limits, and ends with it at the latest.

    Every method may be called by any thread, also after the end. `resize` and `end` never wait, also not while another
    thread waits in `write`.
    """

    @abstractmethod
    def write(self, typed: bytes) -> None:
        """Let the program read this; it waits while the program reads nothing."""

    @abstractmethod
    def resize(self, size: Size) -> None:
        """Let the program know that its terminal has another size, at the latest once it has read what was written."""

    @abstractmethod
    def wait(self, seconds: float | None = None) -> int | None:
        """Its exit code, as shells count, once all its output was heard; None if that takes longer."""

    @abstractmethod
    def end(self) -> None:
        """End it by SIGKILL; what it has started and left in the background may go on until the box ends."""
