"""`scripts/bench scheduling`: loads YARN's scheduler with the plug-in and without, prints the table and keeps it."""

from __future__ import annotations

import re
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.info import machine
from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.kept import RESULTS, tell
from bench.scheduling import table
from bench.scheduling.load import Size, run
from hadoop.errors import HadoopError
from hadoop.local.site import PLUGIN

FULL = Size(nodes=1000, warm_ups=1, rounds=5, seconds=4)
QUICK = Size(nodes=50, warm_ups=0, rounds=1, seconds=1)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", type=click.IntRange(10), help="How many.  [default: 1000; 50 with --quick]")
@click.option("--rounds", type=click.IntRange(1), help="Rounds in turns.  [default: 5; 1 with --quick]")
@click.option(
    "--seconds", type=click.FloatRange(0.1), help="Of each of four trials a round.  [default: 4; 1 with --quick]"
)
@click.option("--quick", is_flag=True, help="Few nodes, one round: shows that the bench works, measures nothing.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --quick nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    nodes: int | None, rounds: int | None, seconds: float | None, quick: bool, output: Path | None, as_json: bool
) -> None:
    """Measure how many containers a second YARN's scheduler places with the plug-in and with the stock policy.

    It takes about five minutes.

    \b
    Examples:
      scripts/bench scheduling
      scripts/bench scheduling --quick
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the JVM is ended
    usual = QUICK if quick else FULL
    size = Size(nodes or usual.nodes, usual.warm_ups, rounds or usual.rounds, seconds or usual.seconds)
    try:
        record = _measure(size)
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    tell("scheduling", record, table.markdown(record), as_json, output or (None if quick else RESULTS))


def _measure(size: Size) -> dict[str, Any]:
    since = machine.Since()
    trials = run(size)
    return since.heading(ROOT, _versions()) | {
        "size": asdict(size),
        "idle_ratio": max(trial["found"]["idleTurns"] for trial in trials),
        "figures": table.rows(trials),
    }


def _versions() -> dict[str, str]:
    found = re.search(r"<hadoop.version>(\S+)<", (PLUGIN / "pom.xml").read_text())
    return machine.ours() | {"Hadoop": found[1] if found else ""}


if __name__ == "__main__":
    main()
