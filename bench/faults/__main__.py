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
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.parts import Part, PartType, describe_commit, read_parts
from hadoop.errors import HadoopError

PLACES: Mapping[str, Callable[[Path | None, int], AbstractContextManager[Place]]] = {
    "local": local,
    "ha": ha,
    "lab": lab,
}
MOST_JOBS_A_FAULT = 3
"""Jobs in all, for each fault asked for: those that come too late again and again are given up."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--on", type=click.Choice([*PLACES]), default="local", show_default=True, help="Where.")
@click.option("--faults", "count", type=click.IntRange(1), default=100, show_default=True, help="How many.")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same faults in the same order.")
@click.option("--part", type=PartType(), default="1/1", help="Only this part of the jobs: 3/20 is the third of twenty.")
@click.option("--only", "kinds", multiple=True, type=click.Choice(sorted(ways.FAULTS)), help="Only these.")
@click.option("--in-a-job", "most", type=click.IntRange(1), default=6, show_default=True, help="Most faults of a job.")
@click.option("--pictures", type=click.IntRange(10), default=2000, show_default=True, help="Of each job.")
@click.option("--sum", "commits", metavar="COMMITS", help="Sum up the kept parts of a range of commits: A..B, or HEAD.")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Home of a cluster to use, and to leave the pictures in for the next run.  [default: a new one]",
)
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=RESULTS, help="Folder for the results."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    on: str,
    count: int,
    seed: int,
    part: Part,
    kinds: tuple[str, ...],
    most: int,
    pictures: int,
    commits: str | None,
    home: Path | None,
    output: Path,
    as_json: bool,
) -> None:
    """Hit what a job needs while it runs, and count its rows: all of it is real, and takes about an hour.

    Local faults hit a cluster on this machine, which with --on ha has two NameNodes, ResourceManagers and services: one
    takes over when the other is killed or stands still. On the lab, machines lose their power and their networks; it
    must be up: scripts/lab up. A thousand faults take many hours: run them in parts, and sum up what was kept.

    \b
    Examples:
      scripts/bench faults
      scripts/bench faults --only master --only node --faults 2
      scripts/bench faults --on ha --only namenode_failover --faults 2
      scripts/bench faults --on lab --faults 40
      scripts/bench faults --faults 1000 --part 3/20
      scripts/bench faults --sum HEAD
    """
    try:
        if commits:
            sys.exit(_tell_sum(read_parts(output, "faults", commits), commits, as_json))
        commit = describe_commit()
        jobs = part.take(draw_faults(count, seed, _choose(on, kinds), most))
        with PLACES[on](home, pictures) as place:
            ways.check({kind for job in jobs for kind in job}, place)
            record = _run(place, jobs, f"{seed}/{part.number}", pictures, most)
            record |= {"commit": commit, "seed": seed, "part": part, "on": on}
            tell("faults", record, table.markdown(record), as_json, output)  # before all is ended, which may fail
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    hit = sum(len(trial["faults"]) for trial in record["trials"])
    sys.exit(hit < record["drawn"] or any(trial["wrong"] for trial in record["trials"]))


def _tell_sum(records: total.Records, commits: str, as_json: bool) -> bool:
    """Print it, and tell whether a goal is missed."""
    counted = {kind: asdict(one) for kind, one in total.count(records).items()}
    click.echo(json.dumps(counted, indent=1) if as_json else total.markdown(records, commits))
    return bool(total.find_missing_goals(records))


def _choose(on: str, kinds: Sequence[str]) -> Sequence[str]:
    """The kinds that were named, or all that can be done there; BenchError for one that cannot."""
    possible = ways.find_kinds(on)
    for kind in kinds:
        if kind not in possible:
            raise BenchError(f"{kind} cannot be done with --on {on}: name one of {', '.join(possible)}")
    return kinds or possible


def _run(place: Place, jobs: Sequence[Sequence[str]], seed: str, pictures: int, most: int) -> dict[str, Any]:
    """What came too late, because mending took longer than the rest of the job, has other jobs in the end."""
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
            outcome = trials.run(place, number, kinds, chance, pictures)
        except (KeyboardInterrupt, SystemExit):
            if not outcomes:
                raise
            click.echo("ended: the jobs before this one count", err=True)
            break
        said = "; ".join(outcome.wrong) or "every picture once"
        click.echo(
            f"job {number}, {len(waiting)} to come: {', '.join(outcome.faults) or 'too late'}: {said} "
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
