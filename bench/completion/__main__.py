"""`scripts/bench completion`: training tasks on the lab, placed in several ways in turns."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.completion import simulate, total
from bench.completion.draw import SLICES, Slice, draw_slices
from bench.completion.model import Alone, find_best
from bench.completion.scene import Scene, scene, teach
from bench.completion.shapes import BUSY, SHAPES, Shape
from bench.completion.trial import run
from bench.completion.ways import STOCK, WAYS
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.lab import WORKERS
from bench.parts import Part, PartType, describe_commit, read_parts
from bench.telling import say
from hadoop.client.jars import JARS
from hadoop.errors import HadoopError
from infosvc.wire.errors import InfoError

PARTS = sum(SLICES.values())
DRAWS = 200
"""Of a simulation."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--part", type=PartType(), default="1/1", help=f"Only this part: 3/{PARTS} is a bit of one load.")
@click.option(
    "--shape",
    type=click.Choice([*SHAPES]),
    default=BUSY.name,
    show_default=True,
    help="Workers of 0.4 CPU that are unevenly busy, or workers with uneven CPUs and cards.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the tasks, and of how busy workers are.")
@click.option("--way", "names", multiple=True, type=click.Choice(WAYS), help="Only these.  [default: all]")
@click.option(
    "--simulate",
    "seconds",
    type=click.FloatRange(1),
    help="Only on a model, with programs that take so long when idle.",
)
@click.option("--tasks", type=click.IntRange(1), help="Only so many of each part: shows that it works.")
@click.option("--sum", "commits", metavar="COMMITS", help="Sum up the kept parts of a range of commits: A..B, or HEAD.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --tasks or --way nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    part: Part,
    shape: str,
    seed: int,
    names: tuple[str, ...],
    seconds: float | None,
    tasks: int | None,
    commits: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure how soon small networks are trained on four workers that differ, by what places their tasks.

    40 tasks come at each of three loads. They are placed by stock YARN, at random, by least pressure, by learned speed,
    and without YARN, by `docker run` on the least busy worker. It takes hours: each of the 16 parts takes about 40
    minutes. The lab must be up: scripts/lab up.

    With --shape uneven, nothing else runs on the workers. They have 0.25, 0.4, 0.4 and 0.7 CPU; the last has a network
    card of 100 Mbit/s, the others of 1000 Mbit/s. Half of the tasks read all the time what this machine sends.
    A sum names both shapes, each with its own tables.

    \b
    Examples:
      scripts/bench completion --part 1/16
      scripts/bench completion --part 1/16 --shape uneven
      scripts/bench completion --sum HEAD
      scripts/bench completion --simulate 200
      scripts/bench completion --part 9/16 --tasks 4 --way stock --way learned
    """
    if seconds:
        click.echo(simulate.markdown(seconds, DRAWS, SHAPES[shape]))
        return
    try:
        if commits:
            sys.exit(_tell_sum(read_parts(output or RESULTS, "completion", commits), commits, as_json))
        record = _measure(SHAPES[shape], part, seed, names or WAYS, tasks)
    except (BenchError, HadoopError, InfoError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    kept = None if names or tasks else RESULTS
    tell("completion", record, total.markdown([record], record["commit"]), as_json, output or kept)


def _measure(shape: Shape, part: Part, seed: int, names: tuple[str, ...], tasks: int | None) -> dict[str, Any]:
    commit, since = describe_commit(), machine.Since()
    slices = [Slice(one.load, one.wishes[:tasks]) for one in part.take(draw_slices(seed, shape.programs))]
    with scene(shape, seed, say) as (found, busy):
        alone = teach(found, say)
        kept = [_turns(found, one, names, alone, seed, part.number + place) for place, one in enumerate(slices)]
    told = [[*pair, *seconds] for pair, seconds in alone.items()]
    return since.heading(RESULTS, machine.ours() | machine.hadoop(JARS)) | {
        "commit": commit,
        "seed": seed,
        "part": part,
        "on": "lab",
        "shape": shape.name,
        "cpus": shape.cpus,
        "cards": shape.cards or None,
        "busy": busy.to_json() if busy else None,
        "alone": told,
        "slices": kept,
    }


def _turns(found: Scene, one: Slice, names: tuple[str, ...], alone: Alone, seed: int, place: int) -> dict[str, Any]:
    """All ways with the same tasks, in an order that is drawn for each slice."""
    unit = 1 / sum(1 / _usual(alone, name) for name in WORKERS)
    order = list(names)
    random.Random(f"{seed}/{one.load}/{place}").shuffle(order)  # noqa: S311 - an experiment that can be repeated
    ways = {}
    for way in order:
        ways[way] = run(found, one, way, unit)
        mean = sum(row["completed"] for row in ways[way]) / len(ways[way])
        say(f"load {one.load}, {way}: {len(ways[way])} tasks, {mean:.1f} s from asking to the end in the mean")
    return {
        "load": one.load,
        "unit": unit,
        "wishes": [asdict(wish) for wish in one.wishes],
        "ways": {way: ways[way] for way in names},
        "best": find_best(one.wishes, alone, unit),
    }


def _usual(alone: Alone, node: str) -> float:
    """Seconds of a task of usual length that has the node for itself, in the mean of the programs."""
    found = [sum(seconds) for (name, _), seconds in alone.items() if name == node]
    return sum(found) / len(found)


def _tell_sum(records: total.Records, commits: str, as_json: bool) -> bool:
    """Print it, and tell whether a goal is missed."""
    missing = total.find_missing_goals(records)
    told = {
        f"{shape}/{load}/{way}": asdict(found)
        for shape in SHAPES
        for load in SLICES
        for way in total.AGAINST_STOCK
        if (found := total.compare(total.of_shape(records, shape), load, way, STOCK))
    }
    click.echo(
        json.dumps({"ratios": told, "missing": missing}, indent=1) if as_json else total.markdown(records, commits)
    )
    return bool(missing)


if __name__ == "__main__":
    main()
