"""What is measured: a piece for even and for uneven nodes and each number of images, kept warm or cold, in turns."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.inference import stays
from bench.inference.figures import EVEN, SCENES, SIZES, cold_piece, key_of, warm_piece
from bench.inference.stays import Size, Take
from bench.inference.ways import Work
from bench.info.errors import BenchError
from bench.noting import Notes
from bench.spark import SPARK_PYTHON
from bench.stage import Stage, stage
from bench.telling import say

IMAGES_TO_WARM, QUICK_IMAGES = 200, 20
ROUNDS: Mapping[int, int] = {100: 6, 1_500: 5, 10_000: 2}
COLD_ROUNDS: Mapping[int, int] = {100: 6, 1_500: 4, 10_000: 3}
JOBS: Mapping[int, int] = {100: 3, 1_500: 1, 10_000: 1}
"""Of each way in a round, of which the middle one counts."""


@dataclass(frozen=True)
class Place(Notes):
    """Where to measure a piece; `rounds` are None for what it thinks right, `is_quick` for a few images only.

    `home` is that of its cluster. Without `has_spark`, Spark is left out.
    """

    home: Path
    engine: str
    weights: Path | None
    batch: int
    chance: random.Random
    rounds: int | None
    is_quick: bool
    has_spark: bool


def list_cpus(scene: str) -> tuple[int, ...]:
    """The CPU of each node: one each, or one for the first three and another for the fourth."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise BenchError("two cores are needed to make nodes uneven")
    first, last = cores[0], cores[-1]
    return (first, last) if scene == EVEN else (first, first, first, last)


def measure(place: Place, scene: str, images: int, takes: Mapping[str, Take], rounds: int) -> None:
    """All ways once in each round, in an order that is drawn; a round that failed counts for none of them."""
    if place.has_spark and not SPARK_PYTHON.exists():
        raise BenchError("Spark is not installed: run scripts/setup --bench, or give --no-spark")
    order = [name for name in takes if place.has_spark or not name.startswith("spark")]
    with _prepare(place, scene, images) as (made, size):

        def take_one() -> dict[str, float]:
            place.chance.shuffle(order)
            told: stays.Told = {}
            for name in order:
                these = takes[name](made, size)
                say(", ".join(f"{way}: {phases['whole']:.2f} s" for way, phases in these.items()))
                told |= these
            return {
                key_of(scene, images, way, phase): value
                for way, phases in told.items()
                for phase, value in phases.items()
            }

        def mend() -> None:
            made.end_jobs()
            stays.come_to_rest(made)

        for number in range(1, (place.rounds or rounds) + 1):
            place.measure(f"round {number}", take_one, mend)


@contextmanager
def _prepare(place: Place, scene: str, images: int) -> Iterator[tuple[Stage, Size]]:
    """A cluster with all images, whose nodes are judged by the speeds that they had in a pool."""
    cpus = list_cpus(scene)
    pictures, warm = (QUICK_IMAGES, QUICK_IMAGES) if place.is_quick else (images, IMAGES_TO_WARM)
    work = Work(place.engine, place.weights, place.batch, pictures, tuple(sorted(set(cpus))))
    size = Size(work, images, warm, 1 if place.is_quick else JOBS[images])
    with stage(place.home, pictures, nodes=len(cpus), cpus=cpus) as made:
        if not made.hdfs().status(size.warm_folder, strict=False):
            with tempfile.TemporaryDirectory(prefix="bench-") as directory:
                made.nodewise("images", "make", directory, "-n", str(warm))
                made.nodewise("images", "load", directory, size.warm_folder)
        made.judge([1.0] * len(cpus))
        speeds = stays.learn_speeds(made, size)
        say("images/s of each node in a pool: " + ", ".join(f"{speed:.1f}" for speed in speeds))
        made.judge(speeds)
        yield made, size


def _list_pieces() -> Iterator[tuple[str, Callable[[Place], None]]]:
    for images in SIZES:
        for scene in SCENES:
            warm = partial(measure, scene=scene, images=images, takes=stays.STAYS, rounds=ROUNDS[images])
            yield warm_piece(scene, images), warm
    for images in SIZES:
        for scene in SCENES:
            cold = partial(measure, scene=scene, images=images, takes=stays.STARTS, rounds=COLD_ROUNDS[images])
            yield cold_piece(scene, images), cold


PIECES: dict[str, Callable[[Place], None]] = dict(_list_pieces())
