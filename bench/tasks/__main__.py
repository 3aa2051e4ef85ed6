"""`scripts/bench tasks`: runs tasks on a real cluster, prints the table and keeps it."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from bench.info import machine
from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.kept import RESULTS, tell
from bench.programs import output
from bench.tasks import box, kills, lines, start, table
from bench.tasks.scene import Scene, scene
from hadoop.errors import HadoopError
from hadoop.local.site import PLUGIN

PARTS = ("start", "lines", "box", "kills")


@dataclass(frozen=True)
class Size:
    """How often, and how much of each part."""

    nodes: int = 10
    rounds: int = 5
    tasks: int = 20
    lines_per_second: int = 50
    line_seconds: float = 20.0
    box_seconds: float = 10.0
    kills: int = 100
    seed: int = 1


QUICK = Size(nodes=2, rounds=1, tasks=2, lines_per_second=20, line_seconds=2.0, box_seconds=0.5, kills=2)


class Parts(click.ParamType[frozenset[str]]):
    """Names of parts, separated by commas."""

    name = "parts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        """The parts; a usage error for one that there is not."""
        if isinstance(value, frozenset):
            return value
        wanted = frozenset(str(value).split(","))
        if unknown := sorted(wanted - set(PARTS)):
            self.fail(f"there is no part {unknown[0]!r}: choose among {', '.join(PARTS)}", param, ctx)
        return wanted


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", type=Parts(), default=frozenset(PARTS), help="Parts: start, lines, box, kills.  [default: all]")
@click.option("--rounds", type=click.IntRange(1), help="Rounds.  [default: 5; 1 with --quick]")
@click.option("--quick", is_flag=True, help="Few tasks, one round: shows that the bench works, measures nothing.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --quick or --only nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(only: frozenset[str], rounds: int | None, quick: bool, output: Path | None, as_json: bool) -> None:
    """Measure how soon tasks begin and their lines are read, what a box of Docker costs, and kill submitters.

    It takes about twenty minutes.

    It needs root, for Docker.

    \b
    Examples:
      scripts/bench tasks
      scripts/bench tasks --only lines --rounds 1 --json
      scripts/bench tasks --quick
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    usual = QUICK if quick else Size()
    size = replace(usual, rounds=rounds or usual.rounds)
    try:
        record = _measure(size, only)
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    kept = None if quick or only != frozenset(PARTS) else RESULTS
    tell("tasks", record, table.markdown(record), as_json, output or kept)


def _measure(size: Size, parts: frozenset[str]) -> dict[str, Any]:
    since, found = machine.Since(), []
    with scene(size.nodes) as made:
        rounds = size.rounds if parts - {"kills"} else 0
        for number in range(1, rounds + 1):
            click.echo(f"round {number} of {rounds}", err=True)
            found.append(_round(made, size, parts))
        if "kills" in parts:
            click.echo("killing submitters", err=True)
            found.append(kills.measure(made.made, size.kills, size.seed))
    return since.heading(ROOT, _versions()) | {"size": asdict(size), "figures": table.rows(found)}


def _round(made: Scene, size: Size, parts: frozenset[str]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    if "start" in parts:
        found |= start.measure(made)
    if "box" in parts:
        found |= box.measure(made.docker, size.box_seconds)
        found["box_ratio"] = found["steps_docker"] / found["steps_process"]
    if "lines" in parts:
        found |= lines.measure(made, size.tasks, size.lines_per_second, size.line_seconds)
    return found


def _versions() -> dict[str, str]:
    hadoop = re.search(r"<hadoop.version>(\S+)<", (PLUGIN / "pom.xml").read_text())
    docker = output(["dockerd", "--version"], "Docker's version").split()[2].rstrip(",")
    return machine.ours() | {"Hadoop": hadoop[1] if hadoop else "", "Docker": docker}


if __name__ == "__main__":
    main()
