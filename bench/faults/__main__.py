"""`scripts/bench faults`: jobs with seeded random faults in the middle, and the table of what became of them."""

from __future__ import annotations

import json
import random
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.faults import kinds as ways
from bench.faults import table, total, trials
from bench.faults.draw import draw_faults, pack
from bench.faults.ha import ha
from bench.faults.lab import lab
from bench.faults.local import local
from bench.faults.place import Place
from bench.faults.pool.standing import pool
from bench.faults.pool.three_jobs import ThreeJobs
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.parts import Part, PartType, describe_commit, read_parts
from hadoop.errors import HadoopError

PLACES: Mapping[str, Callable[[Path | None, int], AbstractContextManager[Place]]] = {
    "local": local,
    "ha": ha,
    "pool": pool,
    "lab": lab,
}
WORKS: Mapping[str, trials.Make] = {"pool": ThreeJobs}
"""What is hit where it is not one job with an application of its own."""
FAULTS, PICTURES = 100, {"local": 2000, "ha": 2000, "pool": 600, "lab": 2000}
QUICK_FAULTS, QUICK_PICTURES = 5, 400
MOST_JOBS_A_FAULT = 3
"""Jobs in all, for each fault asked for: those that come too late again and again are given up."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--on", type=click.Choice([*PLACES]), default="local", show_default=True, help="Where.")
@click.option("--faults", "count", type=click.IntRange(1), help="How many.  [default: 100; 5 with --quick]")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same faults in the same order.")
@click.option("--part", type=PartType(), default="1/1", help="Only this part of the jobs: 3/20 is the third of twenty.")
@click.option("--only", "kinds", multiple=True, type=click.Choice(sorted(ways.FAULTS)), help="Only these.")
@click.option("--in-a-job", "most", type=click.IntRange(1), default=6, show_default=True, help="Most faults of a job.")
@click.option(
    "--pictures",
    type=click.IntRange(10),
    help="Of each job.  [default: 2000; 600 with --on pool, which does many jobs; 400 with --quick]",
)
@click.option("--quick", is_flag=True, help="Few faults and pictures: shows that the bench works, measures nothing.")
@click.option("--sum", "commits", metavar="COMMITS", help="Sum up the kept parts of a range of commits: A..B, or HEAD.")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Home of a cluster to use, and to leave the pictures in for the next run.  [default: a new one]",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --quick nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    on: str,
    count: int | None,
    seed: int,
    part: Part,
    kinds: tuple[str, ...],
    most: int,
    pictures: int | None,
    quick: bool,
    commits: str | None,
    home: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Hit what a job needs while it runs, and count its rows: all of it is real, and takes about an hour.

    Local faults hit a cluster on this machine, which with --on ha has two NameNodes, ResourceManagers and services: one
    takes over when the other is killed or stands still. With --on pool it has a pool with three jobs at once, which is
    asked about single pictures, too. On the lab, machines lose their power and their networks; it must be up:
    scripts/lab up. A thousand faults take many hours: run them in parts, and sum up what was kept.

    \b
    Examples:
      scripts/bench faults
      scripts/bench faults --only master --only node --faults 2
      scripts/bench faults --on ha --only namenode_failover --faults 2
      scripts/bench faults --on pool --part 1/10
      scripts/bench faults --on lab --faults 40
      scripts/bench faults --faults 1000 --part 3/20
      scripts/bench faults --sum HEAD
    """
    try:
        if commits:
            sys.exit(_tell_sum(output or RESULTS, commits, as_json))
        heading = {"commit": describe_commit(), "seed": seed, "part": part, "on": on}
        pictures = pictures or (QUICK_PICTURES if quick else PICTURES[on])
        jobs = part.take(draw_faults(count or (QUICK_FAULTS if quick else FAULTS), seed, _choose(on, kinds), most))
        with PLACES[on](home, pictures) as place:
            record = heading | _run(place, jobs, f"{seed}/{part.number}", pictures, most, WORKS.get(on, trials.OneJob))
            kept = output or (None if quick else RESULTS)
            tell("faults", record, table.markdown(record), as_json, kept)  # before all is ended, which may fail
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    sys.exit(_is_short_or_wrong(record))


def _tell_sum(directory: Path, commits: str, as_json: bool) -> bool:
    """Print it, and tell whether a goal is missed."""
    records = read_parts(directory, "faults", commits)
    counted = {kind: asdict(one) for kind, one in total.count(records).items()}
    click.echo(json.dumps(counted, indent=1) if as_json else total.markdown(records, commits))
    return bool(total.find_missing_goals(records))


def _is_short_or_wrong(record: Mapping[str, Any]) -> bool:
    """Whether a fault did not hit anything, or something went wrong."""
    hit = sum(len(trial["faults"]) for trial in record["trials"])
    return hit < record["drawn"] or any(trial["wrong"] for trial in record["trials"])


def _choose(on: str, kinds: Sequence[str]) -> Sequence[str]:
    """The kinds that were named, or all that can be done there; BenchError for one that cannot."""
    possible = ways.find_kinds(on)
    for kind in kinds:
        if kind not in possible:
            raise BenchError(f"{kind} cannot be done with --on {on}: name one of {', '.join(possible)}")
    return kinds or possible


def _run(
    place: Place, jobs: Sequence[Sequence[str]], seed: str, pictures: int, most: int, make: trials.Make
) -> dict[str, Any]:
    """What came too late, because mending took longer than the rest of the job, has other jobs in the end."""
    ways.check({kind for job in jobs for kind in job}, place)
    since = machine.Since()
    outcomes: list[dict[str, Any]] = []
    waiting, late = deque(jobs), list[str]()
    while (waiting or late) and len(outcomes) < MOST_JOBS_A_FAULT * sum(map(len, jobs)):
        if not waiting:
            waiting.extend(pack(late, max(1, most // 2)))
            late.clear()
        number, kinds = len(outcomes) + 1, waiting.popleft()
        chance = random.Random(f"{seed}/{number}")  # noqa: S311 faults, not secrets
        try:
            outcome = trials.run(place, number, kinds, chance, pictures, make)
        except (KeyboardInterrupt, SystemExit):
            if not outcomes:
                raise
            click.echo("ended: the jobs before this one count", err=True)
            break
        said = "; ".join(outcome.wrong) or "every picture once"
        click.echo(
            f"trial {number}, {len(waiting)} to come: {', '.join(outcome.faults) or 'too late'}: {said} "
            f"({outcome.seconds:.0f} s)",
            err=True,
        )
        late += outcome.missed
        outcomes.append(asdict(outcome))
        if outcome.is_last:
            break
    return since.heading(place.folder, machine.versions()) | {
        "drawn": sum(map(len, jobs)),
        "pictures": pictures,
        "trials": outcomes,
    }


if __name__ == "__main__":
    main()
