"""`scripts/bench faults`: jobs with seeded random faults in the middle, and the table of what became of them."""

from __future__ import annotations

import json
import random
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.clocks import jumping_clocks
from bench.faults import table, total, trials
from bench.faults.faults import FAULTS
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.parts import Part, PartType, describe_commit, read_parts
from bench.stage import Stage, stage
from hadoop.errors import HadoopError

MOST_IN_A_JOB = 3
MOST_JOBS_A_FAULT = 3
"""Jobs in all, for each fault asked for: those that come too late again and again are given up."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--faults", "count", type=click.IntRange(1), default=100, show_default=True, help="How many.")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same faults in the same order.")
@click.option("--part", type=PartType(), default="1/1", help="Only this part of the jobs: 3/20 is the third of twenty.")
@click.option("--only", "kinds", multiple=True, type=click.Choice(sorted(FAULTS)), help="Only these, one in each job.")
@click.option("--pictures", type=click.IntRange(10), default=400, show_default=True, help="Of each job.")
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
    count: int,
    seed: int,
    part: Part,
    kinds: tuple[str, ...],
    pictures: int,
    commits: str | None,
    home: Path | None,
    output: Path,
    as_json: bool,
) -> None:
    """Kill what a job needs while it runs, and count its rows: all of it is real, and takes about an hour.

    A thousand faults take a day: run them in parts, and sum up what was kept.

    \b
    Examples:
      scripts/bench faults
      scripts/bench faults --only master --only node --faults 2
      scripts/bench faults --faults 1000 --part 3/20
      scripts/bench faults --sum HEAD
    """
    try:
        if commits:
            records = read_parts(output, "faults", commits)
            click.echo(
                json.dumps({kind: asdict(one) for kind, one in total.count(records).items()}, indent=1)
                if as_json
                else total.markdown(records, commits)
            )
            sys.exit(bool(total.find_missing_goals(records)))
        commit = describe_commit()
        with jumping_clocks() as clocks, stage(home, pictures) as made:
            made.clocks = clocks
            record = _run(made, part.take(draw_faults(count, seed, kinds)), f"{seed}/{part.number}", pictures)
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    record |= {"commit": commit, "seed": seed, "part": part, "on": "local"}
    tell("faults", record, table.markdown(record), as_json, output)
    hit = sum(len(trial["faults"]) for trial in record["trials"])
    sys.exit(hit < record["drawn"] or any(trial["wrong"] for trial in record["trials"]))


def draw_faults(count: int, seed: int, kinds: Sequence[str]) -> list[list[str]]:
    """Which faults each job meets: up to three, all of `FAULTS` equally often; or one of `kinds`, in turns."""
    if kinds:
        return [[kinds[number % len(kinds)]] for number in range(count)]
    chance = random.Random(seed)  # noqa: S311 faults, not secrets
    pool = [sorted(FAULTS)[number % len(FAULTS)] for number in range(count)]
    chance.shuffle(pool)
    jobs = []
    while pool:
        size = chance.randint(1, MOST_IN_A_JOB)
        jobs.append(pool[:size])
        del pool[:size]
    return jobs


def _run(made: Stage, jobs: Sequence[Sequence[str]], seed: str, pictures: int) -> dict[str, Any]:
    """What came too late, because mending took longer than the rest of the job, has a job of its own in the end."""
    since = machine.Since()
    made.judge([1.0, 1.0, 1.0, 2.0])
    outcomes: list[dict[str, Any]] = []
    waiting = deque(jobs)
    while waiting and len(outcomes) < MOST_JOBS_A_FAULT * sum(map(len, jobs)):
        number, kinds = len(outcomes) + 1, waiting.popleft()
        chance = random.Random(f"{seed}/{number}")  # noqa: S311 faults, not secrets
        outcome = trials.run(made, number, kinds, chance, pictures)
        said = "; ".join(outcome.wrong) or "every picture once"
        click.echo(
            f"job {number}, {len(waiting)} to come: {', '.join(outcome.faults) or 'too late'}: {said} "
            f"({outcome.seconds:.0f} s)",
            err=True,
        )
        waiting.extend([kind] for kind in outcome.missed)
        outcomes.append(asdict(outcome))
    return since.heading(made.cluster.home, machine.versions()) | {
        "drawn": sum(map(len, jobs)),
        "pictures": pictures,
        "trials": outcomes,
    }


if __name__ == "__main__":
    main()
