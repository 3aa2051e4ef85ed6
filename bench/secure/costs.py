"""What Kerberos and privacy cost: the same job and the same listing on clusters side by side, in turns."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count

from bench.info.errors import BenchError
from bench.programs import with_jvm
from bench.secure.figures import JOB, LISTING, WAYS, key_of
from bench.secure.scene import Found, Place
from bench.stage import Stage, words_of_job

JOB_SECONDS = 900.0
_OUTPUTS = count(1)

Phases = Mapping[str, float]


def measure_jobs(place: Place, rounds: int) -> Found:
    """The command of a small job, from its beginning to its report; one of each way that is not measured goes first."""
    with place.side_by_side(place.size.pictures) as stages:
        for made in stages.values():
            run_job(made, place.size.pictures)
        return _take_turns(place, JOB, rounds, lambda way: run_job(stages[way], place.size.pictures))


def measure_listings(place: Place, rounds: int) -> Found:
    """A program that lists all files with blocks and holders, from its beginning to its end."""
    with place.side_by_side(0) as stages:
        for way, made in stages.items():
            _make_files(place, way, made)
        return _take_turns(place, LISTING, rounds, lambda way: _list(stages[way], place.size.files))


def run_job(made: Stage, pictures: int) -> Phases:
    """Seconds of a job; BenchError when a picture has no row."""
    begun = time.monotonic()
    words = words_of_job(f"/bench/out/{time.time_ns()}-{next(_OUTPUTS)}", "--wait", "--json")
    report = json.loads(made.nodewise("job", "submit", *words, timeout=JOB_SECONDS))
    check_report(report, pictures)
    return {"whole": time.monotonic() - begun}


def check_report(report: Mapping[str, int], pictures: int) -> None:
    """BenchError when a job's report does not tell of a row for each picture."""
    if report["images"] != pictures or report["errors"]:
        raise BenchError(f"{report['images']} of {pictures} pictures have rows, {report['errors']} of them errors")


def _make_files(place: Place, way: str, made: Stage) -> None:
    """Files with blocks below a folder, unless a home that is used again has them."""
    folder, number = _folder(place.size.files), place.size.files
    if int(json.loads(with_jvm(made.cluster, "bench.secure.listed", folder))["files"]) == number:
        return
    begun = time.monotonic()
    with_jvm(made.cluster, "bench.listing.files", folder, str(number))
    place.say(f"{way}: {number} files were made in {time.monotonic() - begun:.0f} s")


def _list(made: Stage, number: int) -> Phases:
    begun = time.monotonic()
    found = json.loads(with_jvm(made.cluster, "bench.secure.listed", _folder(number)))
    if found["files"] != number:
        raise BenchError(f"{found['files']} of {number} files were listed")
    return {"whole": time.monotonic() - begun, "listed": found["seconds"]}


def _folder(number: int) -> str:
    return f"/bench/{number}"


def _take_turns(place: Place, piece: str, rounds: int, once: Callable[[str], Phases]) -> Found:
    """All ways, in an order that is drawn for each round; a round that failed counts for none of them."""
    found: Found = {}
    order = list(WAYS)
    for number in range(1, (place.rounds or rounds) + 1):
        place.chance.shuffle(order)
        told = {way: once(way) for way in order}
        for way, phases in told.items():
            place.say(f"round {number}, {way}: " + ", ".join(f"{name} {value:.2f} s" for name, value in phases.items()))
            for name, value in phases.items():
                found.setdefault(key_of(piece, way, name), []).append(value)
    return found


JOBS = partial(measure_jobs, rounds=7)
LISTINGS = partial(measure_listings, rounds=5)
