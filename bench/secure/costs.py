"""What Kerberos and privacy cost: the same job and the same listing on clusters side by side, in turns."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count

from bench.info.errors import BenchError
from bench.programs import with_jvm
from bench.secure import files
from bench.secure.figures import JOB, LISTING, WAYS, key_of
from bench.secure.scene import Place
from bench.stage import Stage, words_of_job

JOB_SECONDS, LISTING_SECONDS = 400.0, 400.0
"""How long one may take; beside much other work it takes ten times as long as alone."""
_OUTPUTS = count(1)

Phases = Mapping[str, float]


def measure_jobs(place: Place, rounds: int) -> None:
    """The command of a small job, from its beginning to its report."""
    with place.side_by_side(place.size.pictures) as stages:

        def end_jobs() -> None:
            for made in stages.values():
                made.end_jobs()

        _take_turns(place, JOB, rounds, lambda way: run_job(stages[way], place.size.pictures), end_jobs)


def measure_listings(place: Place, rounds: int) -> None:
    """A program that lists all files with blocks and holders, from its beginning to its end."""
    files.spread(place)
    with place.side_by_side(0) as stages:
        for way, made in stages.items():
            files.make(place, way, made)
        files.settle(place)
        _take_turns(place, LISTING, rounds, lambda way: _list(stages[way], place.size.files), lambda: None)


def run_job(made: Stage, pictures: int) -> Phases:
    """Seconds of a job; BenchError when a picture has no row."""
    begun = time.monotonic()
    words = words_of_job(f"/bench/out/{time.time_ns()}-{next(_OUTPUTS)}", "--wait", "--json")
    report = json.loads(made.nodewise("job", "submit", *words, timeout=JOB_SECONDS))
    took = time.monotonic() - begun
    check_report(report, pictures)
    return {"whole": took}


def check_report(report: Mapping[str, int], pictures: int) -> None:
    """BenchError when a job's report does not tell of a row for each picture."""
    if report["images"] != pictures or report["errors"]:
        raise BenchError(f"{report['images']} of {pictures} pictures have rows, {report['errors']} of them errors")


def _list(made: Stage, number: int) -> Phases:
    begun = time.monotonic()
    told = with_jvm(made.cluster, "bench.secure.listed", files.folder_of(number), seconds=LISTING_SECONDS)
    took, found = time.monotonic() - begun, json.loads(told)
    if found["files"] != number:
        raise BenchError(f"{found['files']} of {number} files were listed")
    return {"whole": took, "listed": found["seconds"]}


def _take_turns(
    place: Place, piece: str, rounds: int, once: Callable[[str], Phases], mend: Callable[[], object]
) -> None:
    """One of each way that is not measured, then all ways in an order that is drawn for each round.

    A round that failed counts for none of them.
    """
    for way in WAYS:
        once(way)
    order = list(WAYS)

    def take_one() -> dict[str, float]:
        place.chance.shuffle(order)
        told = {way: once(way) for way in order}
        return {key_of(piece, way, name): value for way, phases in told.items() for name, value in phases.items()}

    for number in range(1, (place.rounds or rounds) + 1):
        place.measure(f"round {number}", take_one, mend)


JOBS = partial(measure_jobs, rounds=7)
LISTINGS = partial(measure_listings, rounds=5)
