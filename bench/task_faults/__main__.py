"""`scripts/bench task_faults`: tasks with seeded random faults while they run, and the table of what became of them."""

from __future__ import annotations

import random
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.faults.draw import draw_faults
from bench.faults.goals import tell_sum
from bench.info import machine
from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.kept import RESULTS, tell
from bench.parts import Part, PartType, describe_commit, read_parts
from bench.task_faults import table, trial
from bench.task_faults.faults import FAULTS
from bench.tasks.scene import scene
from hadoop.errors import HadoopError

NODES = 4
IN_A_TRIAL = 2


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--faults", "count", type=click.IntRange(1), default=100, show_default=True, help="How many.")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same faults in the same order.")
@click.option("--part", type=PartType(), default="1/1", help="Only this part: 2/4 is the second of four.")
@click.option("--only", "kinds", multiple=True, type=click.Choice([*FAULTS]), help="Only these.")
@click.option("--sum", "commits", metavar="COMMITS", help="Sum up the kept parts of a range of commits: A..B, or HEAD.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --only nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    count: int,
    seed: int,
    part: Part,
    kinds: tuple[str, ...],
    commits: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Hit what tasks need while they run, and look at their ends, outputs, logs and boxes: all of it is real.

    A fault takes about 40 s. It needs root, for Docker.

    \b
    Examples:
      scripts/bench task_faults --part 1/4
      scripts/bench task_faults --only node --faults 2
      scripts/bench task_faults --sum HEAD
    """
    try:
        if commits:
            parts = read_parts(output or RESULTS, "task_faults", commits)
            sys.exit(tell_sum(table.find_missing_goals(parts), table.markdown(parts, commits), as_json))
        record = _measure(part, seed, count, kinds)
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    kept = None if kinds else RESULTS
    tell("task_faults", record, table.markdown([record], record["commit"]), as_json, output or kept)
    sys.exit(any(one["wrong"] for one in record["trials"]))


def _measure(part: Part, seed: int, count: int, kinds: tuple[str, ...]) -> dict[str, Any]:
    commit, since = describe_commit(), machine.Since()
    trials = part.take(draw_faults(count, seed, kinds or [*FAULTS], IN_A_TRIAL))
    outcomes = []
    with scene(NODES) as made:
        for number, drawn in enumerate(trials, 1):
            chance = random.Random(f"{seed}/{part.number}/{number}")  # noqa: S311 faults, not secrets
            outcome = trial.run(made, number, drawn, chance)
            said = "; ".join(outcome.wrong) or "all as it must be"
            click.echo(
                f"trial {number} of {len(trials)}: {', '.join(drawn)}: {said} ({outcome.seconds:.0f} s)", err=True
            )
            outcomes.append(asdict(outcome))
    heading = since.heading(ROOT, machine.ours())
    return heading | {"commit": commit, "seed": seed, "part": part, "on": "local", "trials": outcomes}


if __name__ == "__main__":
    main()
