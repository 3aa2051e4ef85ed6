"""`scripts/bench training_faults`: runs with seeded random faults while they train, and what they have found."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
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
from bench.training_faults import table, trial
from bench.training_faults.faults import FAULTS
from bench.training_faults.place import place
from hadoop.errors import HadoopError

IN_A_TRIAL = 3


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--faults", "count", type=click.IntRange(1), default=100, show_default=True, help="How many.")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same faults in the same order.")
@click.option("--part", type=PartType(), default="1/1", help="Only this part: 2/8 is the second of eight.")
@click.option("--only", "kinds", multiple=True, type=click.Choice([*FAULTS]), help="Only these.")
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for what runs that go wrong have noted and printed.  [default: it is not kept]",
)
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
    logs: Path | None,
    commits: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Hit members, masters, nodes and networks of training runs, and compare what they find with one process alone.

    A run meets up to three faults, and takes about 90 s. It needs root, to cut the network of a node.

    \b
    Examples:
      scripts/bench training_faults --part 1/8
      scripts/bench training_faults --only peers --faults 2 --logs /tmp/logs
      scripts/bench training_faults --sum HEAD
    """
    try:
        if commits:
            parts = read_parts(output or RESULTS, "training_faults", commits)
            sys.exit(tell_sum(table.find_missing_goals(parts), table.markdown(parts, commits), as_json))
        record = _measure(part, seed, count, kinds, logs)
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    kept = None if kinds else RESULTS
    tell("training_faults", record, table.markdown([record], record["commit"]), as_json, output or kept)
    sys.exit(any(one["wrong"] for one in record["trials"]))


def _measure(part: Part, seed: int, count: int, kinds: tuple[str, ...], logs: Path | None) -> dict[str, Any]:
    commit, since = describe_commit(), machine.Since()
    trials = part.take(draw_faults(count, seed, kinds or [*FAULTS], IN_A_TRIAL))
    outcomes = []
    with place() as made, tempfile.TemporaryDirectory(prefix="bench-training-faults-") as folder:
        alone = trial.train_alone(Path(folder) / "alone")
        for number, drawn in enumerate(trials, 1):
            chance = random.Random(f"{seed}/{part.number}/{number}")  # noqa: S311 faults, not secrets
            out = Path(folder) / str(number)
            outcome = trial.run(made, out, number, drawn, chance, alone)
            said = "; ".join(outcome.wrong) or "all as it must be"
            click.echo(f"run {number} of {len(trials)}: {', '.join(drawn)}: {said} ({outcome.seconds:.0f} s)", err=True)
            outcomes.append(asdict(outcome))
            if logs and outcome.wrong:
                shutil.copytree(out, logs / f"{seed}-{part.number}-{part.of}-{number}", dirs_exist_ok=True)
            shutil.rmtree(out, ignore_errors=True)
    heading = since.heading(ROOT, machine.ours())
    return heading | {"commit": commit, "seed": seed, "part": part, "on": "local", "trials": outcomes}


if __name__ == "__main__":
    main()
