"""`scripts/bench info`: measures what was asked for, prints the table and keeps it."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from bench.info import agent, growth, ingest, machine, prometheus, restart, rounds, table
from bench.info.errors import BenchError
from bench.info.figures import Found
from bench.info.scale import FULL, PARTS, QUICK, Scale
from bench.info.server import enrol, serving
from bench.kept import RESULTS, tell

BUSY = 0.5


class Bench:
    """One run: what both sides have shown so far, and where the programs under test keep their files."""

    def __init__(self, scale: Scale, parts: Sequence[str], directory: Path) -> None:
        self._scale = scale
        self._parts = parts
        self._directory = directory
        self._begun = time.monotonic()
        self.ours: list[Found] = []
        self.theirs: list[Found] = []
        self.senders: list[Found] = []

    def run(self) -> None:
        """Measure every part that is asked for."""
        if rounds.PARTS.intersection(self._parts):
            self._under_load()
        if "ingest" in self._parts:
            self._ingest()
        if "restart" in self._parts:
            self._restart()
        if "scale" in self._parts:
            self._grow()
        if "agent" in self._parts:
            self._agents()

    def _under_load(self) -> None:
        scale = self._scale
        with ExitStack() as held:
            self._say("starting the service and Prometheus")
            service = held.enter_context(serving(self._directory / "service"))
            enrol(service, scale)
            other = None
            if prometheus.is_installed():
                other = held.enter_context(prometheus.scraping(self._directory / "prometheus", scale))
                other.pause()
            for number in range(1, scale.rounds + 1):
                self._say(f"under load, round {number} of {scale.rounds}: nodewise")
                found, said = rounds.of_service(service, scale, self._parts)
                self.ours.append(found)
                self.senders.append(said)
                if other is not None:
                    self._say(f"under load, round {number} of {scale.rounds}: Prometheus")
                    self.theirs.append(rounds.of_prometheus(other, scale, self._parts))

    def _ingest(self) -> None:
        self._say("starting a service for each way of acknowledging")
        with ingest.services(self._directory / "ingest", self._scale) as services:
            for number in range(1, self._scale.rounds + 1):
                self._say(f"ingest, round {number} of {self._scale.rounds}")
                self.ours.append(ingest.one_round(services, self._scale))

    def _restart(self) -> None:
        self._say("filling a database of each kind")
        with restart.fill(self._directory / "restart", self._scale) as stored:
            for number in range(1, self._scale.rounds + 1):
                self._say(f"restart, round {number} of {self._scale.rounds}")
                self.ours.append(restart.one_round(stored, self._scale))

    def _grow(self) -> None:
        self._say(f"starting a service for each of {', '.join(map(str, self._scale.sizes))} nodes")
        with growth.services(self._directory / "scale", self._scale) as services:
            for number in range(1, self._scale.rounds + 1):
                self._say(f"growth, round {number} of {self._scale.rounds}")
                self.ours.append(growth.one_round(services))

    def _agents(self) -> None:
        self._say("starting agents")
        with agent.watching(self._directory / "agent", self._scale) as watched:
            for number in range(1, self._scale.rounds + 1):
                self._say(f"agents, round {number} of {self._scale.rounds}")
                ours, theirs = agent.one_round(watched, self._scale)
                self.ours.append(ours)
                self.theirs.append(theirs)

    def _say(self, what: str) -> None:
        click.echo(f"{time.monotonic() - self._begun:6.1f} s  {what}", err=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", help=f"Parts to measure, separated by commas: {', '.join(PARTS)}.  [default: all]")
@click.option("--quick", is_flag=True, help="Few nodes and short times: shows that the bench works, measures nothing.")
@click.option("--rounds", "count", type=click.IntRange(1), help="Rounds in turns.  [default: 3; 1 with --quick]")
@click.option("--nodes", type=click.IntRange(50), help="Simulated nodes.  [default: 1000; 50 with --quick]")
@click.option(
    "--heartbeats/--no-heartbeats", default=True, help="Whether simulated nodes say between reports that they live."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --quick or --only nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    only: str | None,
    quick: bool,
    count: int | None,
    nodes: int | None,
    heartbeats: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure the information service beside Prometheus on this machine; about sixteen minutes.

    \b
    Examples:
      scripts/bench info
      scripts/bench info --only read,visible --rounds 1 --json
      scripts/bench info --quick
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    parts = _parts(only)
    scale = replace(QUICK if quick else FULL, heartbeats=heartbeats)
    scale = replace(scale, rounds=count or scale.rounds, nodes=nodes or scale.nodes)
    try:
        record, found = _measure(scale, parts)
    except BenchError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    text = table.markdown(record, found, scale)
    tell("info", record, text, as_json, output or (None if quick or only else RESULTS))


def _parts(only: str | None) -> list[str]:
    asked = only.split(",") if only else list(PARTS)
    for part in asked:
        if part not in PARTS:
            raise click.BadParameter(f"{part!r} is not part of the bench: use {', '.join(PARTS)}", param_hint="--only")
    return asked


def _measure(scale: Scale, parts: list[str]) -> tuple[dict[str, Any], list[table.Row]]:
    since = machine.Since()
    if since.load > BUSY:
        said = f"this machine is at work already (load {since.load:.1f}), which the figures will show"
        click.echo(f"Warning: {said}", err=True)
    with _workplace() as directory:
        bench = Bench(scale, parts, directory)
        bench.run()
        found = table.rows(bench.ours, bench.theirs, parts)
        record = since.heading(directory, machine.versions()) | {
            "scale": asdict(scale),
            "figures": [row.to_json() for row in found],
            "senders": bench.senders,
        }
    return record, found


@contextmanager
def _workplace() -> Iterator[Path]:
    """A folder that goes with the block, unless the programs' own words in it are needed to see what went wrong."""
    directory = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        yield directory
    except BenchError:
        click.echo(f"what the programs said is in {directory}", err=True)
        raise
    except BaseException:
        shutil.rmtree(directory)
        raise
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
