"""`scripts/bench paper`: the paper's experiment on the lab, and what was added to it since, in turns."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.paper import picture, prepare, table
from bench.paper.journal import Journal
from bench.paper.methods import TITLES, Work, methods, turns
from bench.paper.prepare import BATCH, ENGINE
from bench.paper.stage import Stage, install, stage
from bench.telling import say
from hadoop.client.jars import JARS
from hadoop.errors import HadoopError

DOCS = RESULTS.parents[1] / "docs"
QUICK = {"pictures": 240, "rounds": 1}
SPARK = {name for name in TITLES if name.startswith("spark")}

File = click.Path(dir_okay=False, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--pictures", type=click.IntRange(40), default=4200, show_default=True, help="How many.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Rounds in turns.")
@click.option("--cpus", type=click.FloatRange(0.1, 8), default=0.4, show_default=True, help="Of each worker.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the background load and of who is killed.")
@click.option("--only", "names", multiple=True, type=click.Choice(list(TITLES)), help="Only these.  [default: all]")
@click.option("--quick", is_flag=True, help="One round of 240 pictures: shows that it works, measures nothing.")
@click.option("--journal", type=File, help="Keeps every run as it ends.  [default: a temporary file]")
@click.option("--resume", type=File, help="Go on with a journal.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), help="Folder for the results.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    names: tuple[str, ...],
    quick: bool,
    journal: Path | None,
    resume: Path | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Divide the same pictures among four unevenly busy workers of the lab in many ways, and kill one on the way.

    It takes about an hour and three quarters. The lab must be up: scripts/lab up.

    \b
    Examples:
      scripts/bench paper
      scripts/bench paper --quick
      scripts/bench paper --resume /tmp/bench-paper.jsonl
      scripts/bench paper --only maxflow --only killed --output /tmp/some
    """
    if journal and resume:
        raise click.UsageError("--journal begins a new file, --resume goes on with one: give one of them")
    settings = options | (QUICK if quick else {})
    rounds = settings.pop("rounds")
    since = machine.Since()
    try:
        kept = _journal(journal, resume, settings | {"quick": quick})
        say(f"journal: {kept.path}")
        missing = [
            (number, method)
            for number in range(rounds)
            for method in turns([name for name in TITLES if name in (names or TITLES)], number)
            if not kept.has(number, method)
        ]
        if missing:
            with stage(settings["cpus"]) as made:
                _measure(made, kept, missing, quick)
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    versions = machine.ours() | machine.hadoop(JARS)
    record = since.heading(DOCS, versions) | settings | {"engine": ENGINE, "batch": BATCH}
    record |= {"scene": kept.scene, "runs": kept.runs}
    _tell(record, as_json, output or (None if quick else RESULTS))
    sys.exit(any("failed" in run for run in kept.runs))


def _measure(made: Stage, kept: Journal, missing: Sequence[tuple[int, str]], quick: bool) -> None:
    """Everything that is missing; a run that fails is kept as one that failed, and the next one begins."""
    settings = kept.settings
    install(made)
    prepare.store(made, settings["pictures"], any(method in SPARK for _, method in missing), say)
    if kept.scene is None:
        found = prepare.scene(made, settings["seed"], settings["cpus"], not quick, say)
        kept.set_scene(found | {"taught": prepare.teach_speeds(made, settings["pictures"], settings["seed"])})
    scene = kept.scene or {}
    say("images/s in a job: " + ", ".join(f"{name} {speed:.1f}" for name, speed in scene["taught"].items()))
    for name, percent in scene["percent"].items():
        made.load(name, percent)
    work = Work(settings["pictures"], ENGINE, BATCH, settings["seed"], scene["taught"])
    for number, method in missing:
        run = methods(number, settings["cpus"], scene["percent"])[method]
        kept.add({"round": number, "method": method} | _one(made, work, run))
        say(f"round {number + 1}, {TITLES[method]}: {_summary_line(kept.runs[-1])}")


def _one(made: Stage, work: Work, run: Callable[[Stage, Work], dict[str, Any]]) -> dict[str, Any]:
    """One run, on a cluster that rests before."""
    begun, since = time.monotonic(), machine.Since()
    try:
        made.clear()
        begun, since = time.monotonic(), machine.Since()
        found = run(made, work)
    except (BenchError, HadoopError, subprocess.SubprocessError) as error:
        found = {"failed": str(error)}
    return found | {"steal_ratio": since.steal_ratio(), "wall_seconds": time.monotonic() - begun}


def _summary_line(run: dict[str, Any]) -> str:
    if "failed" in run:
        return f"failed: {run['failed']}"
    told = f"{run['seconds']:.1f} s, {run['over_bound']:.2f} of its bound"
    return f"{told}; {run['wall_seconds']:.0f} s in all, {run['steal_ratio']:.1%} stolen"


def _journal(journal: Path | None, resume: Path | None, settings: dict[str, Any]) -> Journal:
    if resume:
        return Journal.resume(resume, settings)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return Journal.begin(journal or Path(tempfile.gettempdir()) / f"bench-paper-{stamp}.jsonl", settings)


def _tell(record: dict[str, Any], as_json: bool, output: Path | None) -> None:
    tell("paper", record, table.markdown(record), as_json, output)
    if output:
        folder = DOCS if output == RESULTS else output
        for path in picture.draw(folder, record["runs"], sorted(record["scene"]["wanted"])):
            say(f"drawn: {path}")


if __name__ == "__main__":
    main()
