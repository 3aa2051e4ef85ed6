"""The seam between who wants a program run and what runs it."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from boxes.terminal import OnTerminal, Size, Terminal

OnOutput = Callable[[str, bytes], None]
"""Hears which stream (a name in STREAMS) brought which bytes. It may neither raise nor take long: the program waits."""
STREAMS = ("stdout", "stderr")


class BoxError(Exception):
    """A program cannot be started, and could not be the next time; `message` says why, `remedy` what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True)
class Limits:
    """What a program may use. A box that stands in a YARN container leaves to YARN what YARN holds there."""

    memory_mb: int
    vcores: int = 1


@dataclass(frozen=True)
class Served:
    """An image that this process serves as a registry does, so that Docker pulls what it lacks of it.

    port             of 127.0.0.1
    name             of the repository there, which nobody can guess
    configuration    of the image
    sizes            of its layers, unpacked, in bytes
    """

    port: int
    name: str
    configuration: str
    sizes: Sequence[int]


def serve_nothing() -> AbstractContextManager[Served] | None:
    """Of an image that is there as an archive alone."""
    return None


@dataclass(frozen=True)
class Image:
    """What a box shows a program instead of this machine: `id` is `sha256:` and the hash of its configuration.

    One of these is called where the image is not there yet: `serve` serves it while its block runs, if it can, and
    `fetch` writes its archive, as `docker save` makes one, into a file.
    """

    id: str
    fetch: Callable[[Path], None]
    serve: Callable[[], AbstractContextManager[Served] | None] = serve_nothing


@dataclass(frozen=True)
class Program:
    """What runs: `argv`, which no shell reads, with this environment, in a folder that is there.

    `parts` are squashfs files of this machine by the folders at which the program sees them, `devices` names of
    devices that it gets with the files of their drivers, as CDI files of this machine describe them (boxes.cdi). Those
    that are `wished`, each by any of its names, it gets where all of them are described. What starts it gets the
    `descriptors` of this process as 3, 4 and so on.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    limits: Limits
    image: Image | None = None
    parts: Mapping[str, Path] = field(default_factory=dict)
    devices: Sequence[str] = ()
    wished: Sequence[Sequence[str]] = ()
    descriptors: Sequence[int] = ()


@dataclass(frozen=True)
class Ended:
    """How a program ended: with an exit code, or by a signal, whose number then is not None; `said` tells why if known.

    exit_code, signal    one of them is not None
    """

    exit_code: int | None = None
    signal: int | None = None
    said: str = ""

    @property
    def code(self) -> int:
        """The exit code, or 128 and the signal's number, as shells count.

        >>> Ended(signal=9).code
        137
        """
        return 128 + self.signal if self.signal is not None else self.exit_code or 0

    @property
    def text(self) -> str:
        """In words, behind "the program ...".

        >>> Ended(3).text, Ended(signal=11).text, Ended(signal=50).text
        ('ended with exit code 3', 'was killed by SIGSEGV', 'was killed by signal 50')
        >>> Ended(signal=9, said="it needed more than 64 MB").text
        'was killed by SIGKILL: it needed more than 64 MB'
        """
        why = f": {self.said}" if self.said else ""
        if self.signal is None:
            return f"ended with exit code {self.exit_code}{why}"
        known = {one.value: one.name for one in signal.Signals}
        return f"was killed by {known.get(self.signal, f'signal {self.signal}')}{why}"


@dataclass(frozen=True)
class Use:
    """What a program, the terminals of its box and all that came of them have used until now, and what they have now.

    memory_bytes, processes       what they have now; the others never get less
    received_bytes, sent_bytes    over the network; None where that cannot be told
    """

    cpu_seconds: float
    memory_bytes: int
    read_bytes: int
    written_bytes: int
    processes: int
    received_bytes: int | None = None
    sent_bytes: int | None = None


class Box(ABC):
    """Runs one program once. Nothing of it goes on when the program has ended, or when the box's owner has.

    `start` comes first and from one thread; the others may be called by any thread afterwards. They raise OSError when
    what holds the box has failed, so that the program was ended by no fault of its own.

    shows_machine    whether the program sees this machine's files, so that variables which name them are of use to it
    """

    shows_machine: ClassVar[bool]

    @abstractmethod
    def start(self, program: Program, on_output: OnOutput) -> None:
        """Start it; BoxError when it cannot be started, OSError when this machine cannot start anything now.

        `on_output` is called by a thread of each stream, with what the program prints as it is printed.
        """

    @abstractmethod
    def wait(self, seconds: float | None = None) -> Ended | None:
        """How it ended, once all its output was heard and what it left behind is gone; None if that takes longer."""

    @abstractmethod
    def use(self) -> Use | None:
        """What is used until now; None when the program has ended, or that cannot be told."""

    @abstractmethod
    def end(self, grace: float) -> Ended:
        """Ask it to end by SIGTERM, end it by SIGKILL after `grace` seconds, and tell how it ended."""

    @abstractmethod
    def open_terminal(self, argv: Sequence[str], size: Size, on_output: OnTerminal) -> Terminal:
        """Start another program in the box, with the environment and the folder of the first; errors as of `start`."""
