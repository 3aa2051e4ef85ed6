"""What is measured on: clusters side by side that differ in Kerberos alone, and one with two of each master."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.info.errors import BenchError
from bench.noting import MOST_FAILED as MOST_FAILED
from bench.noting import Notes
from bench.secure.figures import KERBEROS, PLAIN, PRIVACY
from bench.stage import Stage, stage
from hadoop.local.planning import Wanted

WANTED: Mapping[str, Wanted] = {
    PLAIN: {"kerberos": False},
    KERBEROS: {"kerberos": True},
    PRIVACY: {"kerberos": True, "protection": "privacy"},
}
"""The clusters, by way."""
HIGHLY_AVAILABLE: Wanted = {"kerberos": True, "ha": True}
GB_OF_A_CLUSTER, GB_OF_HIGHLY_AVAILABLE, GB_OF_A_JOB = 1.4, 2.5, 2.5

Say = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """How much of each; `long_pictures` has a job in whose middle a master is killed."""

    nodes: int = 2
    pictures: int = 200
    long_pictures: int = 2000
    files: int = 100_000


@dataclass(frozen=True)
class Place(Notes):
    """Where to measure a piece and how much; `rounds` are None for what it thinks right.

    `folder` is a new one for the piece, `home` that of its clusters.
    """

    folder: Path
    home: Path
    size: Size
    chance: random.Random
    rounds: int | None
    say: Say

    def home_of(self, name: str) -> Path:
        """Of a cluster of this piece."""
        return self.home / name

    def cluster(self, way: str, pictures: int) -> AbstractContextManager[Stage]:
        """The cluster of one way."""
        self.say(f"starting the cluster {way}")
        return stage(self.home_of(way), pictures, nodes=self.size.nodes, wanted=WANTED[way])

    @contextmanager
    def side_by_side(self, pictures: int) -> Iterator[dict[str, Stage]]:
        """A cluster for each way, until the end of the block."""
        check_memory(len(WANTED) * GB_OF_A_CLUSTER + GB_OF_A_JOB)
        with ExitStack() as stack:
            made = {}
            for way in WANTED:
                made[way] = stack.enter_context(self.cluster(way, pictures))
                made[way].judge([1.0] * self.size.nodes)
            yield made

    @contextmanager
    def highly_available(self, pictures: int) -> Iterator[Stage]:
        """A cluster with Kerberos and two of each master, until the end of the block."""
        check_memory(GB_OF_HIGHLY_AVAILABLE + GB_OF_A_JOB)
        self.say("starting a cluster with two of each master")
        with stage(self.home_of("ha"), pictures, nodes=self.size.nodes, wanted=HIGHLY_AVAILABLE) as made:
            made.judge([1.0] * self.size.nodes)
            yield made


def check_memory(gigabytes: float) -> None:
    """BenchError when this machine has less memory to give: what is measured would wait for it."""
    free = psutil.virtual_memory().available / 1e9
    if free < gigabytes:
        raise BenchError(f"this machine can give {free:.1f} GB, and {gigabytes:.1f} GB are needed: end other programs")
