"""`scripts/bench placement`: measures what was asked for, prints the table and keeps it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from bench.info import machine
from bench.info.processes import ROOT
from bench.kept import RESULTS, tell
from bench.placement import table
from bench.placement.parts import MEASURES, Found
from bench.placement.scale import FULL, PARTS, QUICK, Scale


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", help=f"Parts to measure, separated by commas: {', '.join(PARTS)}.  [default: all]")
@click.option("--quick", is_flag=True, help="Few and small instances: shows that the bench works, measures nothing.")
@click.option("--rounds", type=click.IntRange(1), help="Rounds of planning in turns.  [default: 3; 1 with --quick]")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --quick or --only nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(only: str | None, quick: bool, rounds: int | None, output: Path | None, as_json: bool) -> None:
    """Measure every policy beside plain ways to divide work, on invented clusters.

    It takes about seven minutes on two cores, most of it for the largest plans. What was measured until then is
    shown, and kept, also when the run is stopped.

    \b
    Examples:
      scripts/bench placement
      scripts/bench placement --only makespan,bytes --json
      scripts/bench placement --quick
    """
    parts = _parts(only)
    scale = QUICK if quick else FULL
    scale = replace(scale, rounds=rounds or scale.rounds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was measured until then is kept
    found, since = Found(), machine.Since()
    try:
        _measure(scale, parts, found)
    finally:
        record = since.heading(ROOT, machine.versions()) | {"scale": asdict(scale), "left_out": found.left_out}
        rows = table.rows(found, parts, scale)
        record["figures"] = [row.to_json() for row in rows]
        text = table.markdown(record, rows, scale)
        tell("placement", record, text, as_json, output or (None if quick or only else RESULTS))


def _parts(only: str | None) -> list[str]:
    asked = only.split(",") if only else list(PARTS)
    for part in asked:
        if part not in PARTS:
            raise click.BadParameter(f"{part!r} is not part of the bench: use {', '.join(PARTS)}", param_hint="--only")
    return asked


def _measure(scale: Scale, parts: Sequence[str], found: Found) -> None:
    begun = time.monotonic()

    def say(what: str) -> None:
        click.echo(f"{time.monotonic() - begun:6.1f} s  {what}", err=True)

    for part in parts:
        try:
            MEASURES[part](scale, say, found)
        except BaseException:
            found.left_out.append(f"{part}: stopped before its end, and so was all that would come after it")
            raise


if __name__ == "__main__":
    main()
