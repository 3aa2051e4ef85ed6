"""`scripts/bench training`: runs by nodewise and by others in turns on uneven nodes; prints the table and keeps it."""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.parts import Part, PartType, describe_commit, read_parts
from bench.programs import output as output_of
from bench.telling import say, tell_sum
from bench.training import digits, total
from bench.training.nodes import nodes
from bench.training.pieces import (
    accuracy,
    change,
    coordinator,
    leads,
    local_reads,
    losses,
    pictures,
    speed,
    thin,
)
from bench.training.pieces.place import Found, Place
from jobs.application.package import WORKER_PYTHON

Piece = Callable[[Place], Found]
PIECES: Mapping[str, Piece] = {
    **speed.PIECES,
    **change.PIECES,
    **losses.PIECES,
    **leads.PIECES,
    **accuracy.PIECES,
    **coordinator.PIECES,
    **local_reads.PIECES,
    **thin.PIECES,
    **pictures.PIECES,
}
LOCAL = "local"
SAMPLES, QUICK_SAMPLES = 61_440, 6_144
"""Of an epoch."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--local", "on", flag_value=LOCAL, default=True, help="On this machine.  [default]")
@click.option(
    "--part",
    type=PartType(),
    default="1/1",
    help=f"Only this part of what is measured: 3/{len(PIECES)} is one of {len(PIECES)}.",
)
@click.option("--only", "names", multiple=True, type=click.Choice([*PIECES]), help="Only these.  [default: all]")
@click.option("--seed", type=int, default=1, show_default=True, help="Of data, order, load and losses.")
@click.option("--rounds", type=click.IntRange(1), help="How often each.  [default: what 20 minutes allow]")
@click.option("--quick", is_flag=True, help="Few samples, one round: shows that it works, measures nothing.")
@click.option("--sum", "commits", metavar="COMMITS", help="Sum up the kept parts of a range of commits: A..B, or HEAD.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --only, --rounds or --quick nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    on: str,
    part: Part,
    names: tuple[str, ...],
    seed: int,
    rounds: int | None,
    quick: bool,
    commits: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Train a small network on digits, on nodes that are uneven, change and fail, and beside it by what others use.

    Nodes are processes in control groups with a part of the CPU, which root can make; without, they are CPUs that some
    share, and some figures are not measured. Two network namespaces have a thin link. Others: plain DDP of PyTorch,
    torchrun's elastic runs, MXNet's dist_sync. It takes an hour and a half: each of the parts N/16 takes 20 minutes at
    most. Nothing else should run meanwhile.

    \b
    Examples:
      scripts/bench training --part 1/16
      scripts/bench training --only killed --rounds 1
      scripts/bench training --sum HEAD
    """
    signal.signal(signal.SIGTERM, _leave)
    try:
        if commits:
            sys.exit(tell_sum(total, read_parts(output or RESULTS, "training", commits), commits, as_json))
        record = _measure(on, part, part.take(names or [*PIECES]), seed, 1 if quick else rounds, quick)
    except BenchError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    kept = None if names or rounds or quick else RESULTS
    tell("training", record, total.markdown([record], record["date"]), as_json, output or kept)
    sys.exit(bool(record["failed"]))


def _measure(on: str, part: Part, chosen: Sequence[str], seed: int, rounds: int | None, quick: bool) -> dict[str, Any]:
    commit, since, began = describe_commit(), machine.Since(), time.monotonic()
    readings: Found = {}
    failed: dict[str, str] = {}
    samples = QUICK_SAMPLES if quick else SAMPLES
    with nodes([1.0]) as tried:
        is_limited = tried.is_limited
    with tempfile.TemporaryDirectory(prefix="bench-training-") as folder:
        digits.write(Path(folder), seed, samples)
        place = Place(Path(folder), seed, samples, random.Random(), rounds, quick, say)  # noqa: S311
        for name in chosen:
            chance = random.Random(f"{seed}/{name}")  # noqa: S311 - an experiment that can be repeated
            say(name)
            try:
                readings |= PIECES[name](replace(place, chance=chance))
            except BenchError as error:
                failed[name] = str(error)
                say(f"{name} is not measured: {error}")
    return since.heading(RESULTS, _versions()) | {
        "commit": commit,
        "seed": seed,
        "part": part,
        "on": on,
        "pieces": list(chosen),
        "is_limited": is_limited,
        "throttled": fmean(place.throttled) if place.throttled else None,
        "seconds": time.monotonic() - began,
        "readings": readings,
        "failed": failed,
    }


def _versions() -> dict[str, str]:
    said = output_of(
        [str(WORKER_PYTHON), "-c", "import torch, mxnet; print(torch.__version__, mxnet.__version__)"],
        "the versions of PyTorch and MXNet",
    )
    torch, mxnet = said.split()[-2:]
    return machine.ours() | {"PyTorch": torch, "MXNet": mxnet}


def _leave(*_: object) -> None:
    """Let everything that was started be ended; a second signal would cut that short."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


if __name__ == "__main__":
    main()
