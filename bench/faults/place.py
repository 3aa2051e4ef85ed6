"""What a place must offer for jobs to be hit there, and a job under way."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Generic, Protocol, TypeVar

from hdfs import InsecureClient

from bench.faults.volumes import Volume
from bench.faults.writer import Writer
from hadoop.rest.masters import Addresses
from infosvc.wire.client import InfoClient


class Place(Protocol):
    """A cluster with its information service, and what puts it right."""

    @property
    def name(self) -> str:
        """`local`, `ha`, `pool` or `lab`."""

    @property
    def folder(self) -> Path:
        """Where the disks of its machines are kept."""

    @property
    def user(self) -> str:
        """Who owns the jobs."""

    @property
    def resourcemanager(self) -> Addresses:
        """Where its page is, as http://host:port; of two, where both are."""

    @property
    def volumes(self) -> Sequence[Volume]:
        """The small volumes of its machines; none where nothing can be mounted."""

    def hdfs(self) -> InsecureClient:
        """HDFS over HTTP."""

    def nodewise(self, *words: str) -> str:
        """What a command prints; BenchError when it fails."""

    def submit(self, *words: str) -> Popen[str]:
        """Who submits a job, and follows it where that can be killed too."""

    def client(self) -> InfoClient:
        """The information service as its admin calls it."""

    def find_working(self) -> list[str]:
        """The command lines of what runs for a job on any machine."""

    def back_up(self) -> None:
        """Keep what the service knows before a job, if a fault can bring it back."""

    def is_short(self) -> bool:
        """Whether a DataNode is away that nobody starts again before `mend`."""

    def mend(self) -> None:
        """Start again whatever is missing, and undo what was done; BenchError when it does not come back."""


P_co = TypeVar("P_co", bound=Place, covariant=True)


@dataclass
class Trial(Generic[P_co]):
    """A job under way: its place, its client where that can be killed, its id, the dice, and who writes meanwhile.

    `wrong` is what faults found wrong.
    """

    place: P_co
    client: Popen[str] | None
    job_id: str
    chance: random.Random
    writer: Writer
    wrong: list[str] = field(default_factory=list)


Way = Callable[[Trial[P_co]], bool]
"""How a fault is done in a place; it tells whether there was anything to hit."""
