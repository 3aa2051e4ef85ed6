"""What is measured of each way, the figures that must be reached, and those that follow from others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from bench.asked import Asked, Readings, Values
from bench.info.figures import Figure

EVEN, UNEVEN = "even", "uneven"
SCENES = (EVEN, UNEVEN)
SIZES = (100, 1_500, 10_000)
"""Images of a job."""
PARTITIONS: Mapping[int, tuple[int, ...]] = {100: (12, 32), 1_500: (32, 128), 10_000: (256,)}
"""Of Spark, by images: many, so that even uneven nodes are done at the same time; the best of each round counts."""
CEILING, POOL, COLD, SPARK_COLD, BEST = "ceiling", "pool", "cold", "spark_cold", "spark_best"
PHASES = ("began", "first", "last", "whole", "idle", "bound")
MOST_FIRST, MOST_OVER, SPARE_SECONDS, LEAST_COLD = 1.0, 1.10, 1.0, 2.0
LEAST_AHEAD: Mapping[int, float] = {100: 1.3, 1_500: 1.1, 10_000: 1.0}
"""How many times the pool's time Spark must need at its best, on uneven nodes, by images."""


def name_kept(slices: int, dynamic: bool) -> str:
    """The key of a job in a session of Spark that is kept, in so many partitions."""
    return f"spark_{'dynamic' if dynamic else 'kept'}_{slices}"


def name_ways(pictures: int) -> dict[str, str]:
    """What a table calls each way to do so many images, by its key; Spark at its best comes first."""
    found = {BEST: "Spark at its best: the soonest of the kept ones in each round", POOL: "nodewise, in a pool"}
    for slices in PARTITIONS[pictures]:
        found[name_kept(slices, False)] = f"Spark, session and engines kept, {slices} partitions"
    for slices in PARTITIONS[pictures]:
        found[name_kept(slices, True)] = f"the same with dynamic allocation, {slices} partitions"
    return found | {
        COLD: "nodewise, a job of its own",
        SPARK_COLD: f"Spark, a session of its own, {PARTITIONS[pictures][-1]} partitions",
        CEILING: "ceiling: decode + infer, images in memory, one process per core",
    }


def warm_piece(scene: str, pictures: int) -> str:
    """The piece in which workers, sessions and engines are there before a job comes."""
    return f"{scene}-{pictures}"


def cold_piece(scene: str, pictures: int) -> str:
    """The piece in which each job starts what it needs."""
    return f"{scene}-{pictures}-cold"


def key_of(scene: str, pictures: int, way: str, phase: str) -> str:
    """Under what a reading is kept."""
    return f"{scene}_{pictures}_{way}_{phase}"


def _ask(piece: str, key: str, text: str, unit: str, *, most: float | None = None, least: float | None = None) -> Asked:
    return Asked(Figure(key, piece, f"{piece.replace('-', ', ')}: {text}", unit, most=most, least=least))


def _list_asked(scene: str, pictures: int) -> Iterator[Asked]:
    key = partial(key_of, scene, pictures)
    warm, cold = warm_piece(scene, pictures), cold_piece(scene, pictures)
    ahead = LEAST_AHEAD[pictures] if scene == UNEVEN else None
    yield _ask(warm, key(POOL, "first"), "pool: until the first row", "s", most=MOST_FIRST)
    yield _ask(warm, key(POOL, "over"), f"pool: whole time less {SPARE_SECONDS:.0f} s / bound", "x", most=MOST_OVER)
    yield _ask(warm, key(BEST, "times"), "whole time, Spark kept, at its best / pool", "x", least=ahead)
    given = "the same from when the pool has the job, without the command's own start"
    yield _ask(warm, key(BEST, "given"), given, "x")
    yield _ask(warm, key(POOL, "ceiling"), "pool: whole time / ceiling", "x")
    yield _ask(warm, key(BEST, "ceiling"), "Spark kept, at its best: whole time / ceiling", "x")
    yield _ask(warm, key(POOL, "idle"), "pool: idle time of the slowest node", "s")
    yield _ask(warm, key(BEST, "idle"), "Spark kept, at its best: idle time of the slowest node", "s")
    yield _ask(cold, key(SPARK_COLD, "times"), "whole time, Spark / nodewise", "x", least=LEAST_COLD)


ASKED = tuple(one for scene in SCENES for pictures in SIZES for one in _list_asked(scene, pictures))


def derive(readings: Readings) -> dict[str, Values]:
    """With Spark at its best, and the ratios of each round."""
    found: dict[str, Values] = dict(readings)
    for scene in SCENES:
        for pictures in SIZES:
            _derive(found, partial(key_of, scene, pictures), pictures)
    return found


def _derive(found: dict[str, Values], key: Callable[[str, str], str], pictures: int) -> None:
    def divide(ratio: str, over: str, under: str) -> None:
        if over in found and under in found and len(found[over]) == len(found[under]):
            found[ratio] = [one / other for one, other in zip(found[over], found[under], strict=True)]

    whole = key(POOL, "whole")
    rounds = len(found.get(whole, ()))
    every = [name_kept(slices, dynamic) for slices in PARTITIONS[pictures] for dynamic in (False, True)]
    ways = [way for way in every if rounds and len(found.get(key(way, "whole"), ())) == rounds]
    if ways:
        best = [min(ways, key=lambda way: found[key(way, "whole")][at]) for at in range(rounds)]
        for phase in PHASES:
            found[key(BEST, phase)] = [found[key(way, phase)][at] for at, way in enumerate(best)]
    if rounds:
        bounds = found[key(POOL, "bound")]
        found[key(POOL, "over")] = [
            (one - SPARE_SECONDS) / bound for one, bound in zip(found[whole], bounds, strict=True)
        ]
        given = key(POOL, "given")
        found[given] = [one - began for one, began in zip(found[whole], found[key(POOL, "began")], strict=True)]
        divide(key(BEST, "given"), key(BEST, "whole"), given)
    divide(key(BEST, "times"), key(BEST, "whole"), whole)
    for way in (POOL, BEST):
        divide(key(way, "ceiling"), key(way, "whole"), key(CEILING, "whole"))
    divide(key(SPARK_COLD, "times"), key(SPARK_COLD, "whole"), key(COLD, "whole"))
