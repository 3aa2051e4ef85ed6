"""`scripts/bench dashboard`: opens the dashboard over many nodes in a browser, prints the table and keeps it."""

from __future__ import annotations

import signal
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from bench.dashboard import table
from bench.dashboard.browser import look, version
from bench.info import machine
from bench.info.errors import BenchError
from bench.info.scale import Scale
from bench.info.server import enrol, serving
from bench.info.simulate import sending
from bench.kept import RESULTS, tell


@dataclass(frozen=True)
class Size:
    """How many nodes send how many values each every `interval` seconds, and how long the page is watched live.

    `late` as bench.info has it.
    """

    nodes: int = 1000
    names: int = 10
    interval: float = 5.0
    live_seconds: float = 10.0
    rounds: int = 5
    late: float = 2.0


QUICK = Size(nodes=50, names=3, interval=1.0, live_seconds=1.0, rounds=1, late=60.0)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", type=click.IntRange(1), help="How many.  [default: 1000; 50 with --quick]")
@click.option("--rounds", type=click.IntRange(1), help="Rounds.  [default: 5; 1 with --quick]")
@click.option("--quick", is_flag=True, help="Few nodes, one round: shows that the bench works, measures nothing.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --quick nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(nodes: int | None, rounds: int | None, quick: bool, output: Path | None, as_json: bool) -> None:
    """Measure how soon the dashboard shows 1,000 nodes, and what it costs while their values come in.

    It takes about two minutes.

    \b
    Examples:
      scripts/bench dashboard
      scripts/bench dashboard --quick
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    usual = QUICK if quick else Size()
    size = replace(usual, nodes=nodes or usual.nodes, rounds=rounds or usual.rounds)
    try:
        record = _measure(size)
    except BenchError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    tell("dashboard", record, table.markdown(record), as_json, output or (None if quick else RESULTS))


def _measure(size: Size) -> dict[str, Any]:
    scale = Scale(nodes=size.nodes, names=size.names, interval=size.interval, late=size.late)
    since, found = machine.Since(), []
    with tempfile.TemporaryDirectory(prefix="bench-dashboard-") as home, serving(Path(home) / "home") as service:
        enrol(service, scale)
        with sending(service.address, service.agents, scale, scale.node_names):
            for number in range(1, size.rounds + 1):
                click.echo(f"round {number} of {size.rounds}", err=True)
                found.append(look(service.url, size.nodes, size.live_seconds))
        versions = machine.ours() | {"Chromium": version()}
        record = since.heading(Path(home), versions)
    return record | {"size": asdict(size), "figures": table.rows(found)}


if __name__ == "__main__":
    main()
