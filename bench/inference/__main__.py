"""`scripts/bench inference`: the plain loop, nodewise and Spark on the same cores, in turns."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from bench.inference import in_parts, table
from bench.inference.figures import SCENES
from bench.inference.in_parts import BATCH, ENGINE, Options
from bench.inference.pieces import PIECES, list_cpus
from bench.inference.ways import PACKED, Found, Work, nodewise, pack, plain, spark
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.parts import Part, PartType
from bench.stage import Stage, stage
from hadoop.errors import HadoopError
from locality.program_names import FORMER

USUAL_ROUNDS, USUAL_BATCH = 3, 32
"""Of the comparison without pieces."""
MANY = 32
"""Partitions for Spark that even uneven nodes out, as one who knows about them would choose."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--part", type=PartType(), help=f"Pools and Spark kept: 3/{len(PIECES)} is one piece of {len(PIECES)}.")
@click.option(
    "--only",
    "names",
    multiple=True,
    metavar="PIECE",
    type=click.Choice([*PIECES]),
    help="Only these pieces, such as uneven-1500 or even-100-cold.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order in each round of a piece.")
@click.option("--quick", is_flag=True, help="A few images, one round: shows that pieces work, measures nothing.")
@click.option("--sum", "commits", metavar="COMMITS", help="Sum up the kept parts of a range of commits: A..B, or HEAD.")
@click.option(
    "--pictures", type=click.IntRange(10), default=1500, show_default=True, help="How many, where there are no pieces."
)
@click.option(
    "--rounds", type=click.IntRange(1), help="Rounds in turns.  [default: 3; what the time of a piece allows]"
)
@click.option("--engine", type=click.Choice(sorted(FORMER)), default=ENGINE, show_default=True)
@click.option(
    "--weights", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="For engines that need some."
)
@click.option(
    "--batch", type=click.IntRange(1), help=f"Images per inference.  [default: {USUAL_BATCH}; pieces: {BATCH}]"
)
@click.option("--spark/--no-spark", "with_spark", default=True, show_default=True, help="The same work by Spark, too.")
@click.option("--home", type=click.Path(file_okay=False, path_type=Path), help="Folder of the clusters' homes, kept.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; nothing is kept of pieces that were not measured as usual]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    part: Part | None,
    names: tuple[str, ...],
    seed: int,
    quick: bool,
    commits: str | None,
    pictures: int,
    rounds: int | None,
    engine: str,
    weights: Path | None,
    batch: int | None,
    with_spark: bool,
    home: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure images per second, makespan and time to the first result on even and on uneven nodes.

    With --part, --only or --quick, a pool, Spark with its session and engines kept, and both started anew, do jobs of
    100, 1,500 and 10,000 images. Each of the parts N/12 takes 10 to 40 minutes. Nothing else should run meanwhile.

    \b
    Examples:
      scripts/bench inference
      scripts/bench inference --pictures 100 --rounds 1 --output /tmp/quick
      scripts/bench inference --no-spark --engine onnx_alexnet --weights photos.params
      scripts/bench inference --part 2/12
      scripts/bench inference --sum HEAD
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    try:
        if commits:
            sys.exit(in_parts.sum_up(commits, output, as_json))
        if part or names or quick:
            options = Options(part, names, seed, rounds, quick, engine, weights, batch, with_spark, home)
            sys.exit(in_parts.run(options, output, as_json))
        usual = {"pictures": pictures, "engine": engine, "weights": weights, "batch": batch or USUAL_BATCH}
        _compare(rounds or USUAL_ROUNDS, home, {**usual, "spark": with_spark}, output or RESULTS, as_json)
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


def _compare(rounds: int, home: Path | None, options: dict[str, Any], output: Path, as_json: bool) -> None:
    """The plain loop, jobs and Spark, each started anew: a table for even and for uneven nodes."""
    since = machine.Since()
    found = {name: _scene(name, list_cpus(name), rounds, home, options) for name in SCENES}
    record = since.heading(output.parent, machine.versions()) | {
        **{name: str(value) if value else None for name, value in options.items() if name != "spark"},
        "scenes": found,
    }
    tell("inference", record, table.markdown(record), as_json, output)


def _scene(
    name: str, cpus: Sequence[int], rounds: int, home: Path | None, options: dict[str, Any]
) -> dict[str, list[Found]]:
    """Every way in turns on nodes that are pinned to these CPUs; the rounds of each."""
    work = Work(options["engine"], options["weights"], options["batch"], options["pictures"], tuple(sorted(set(cpus))))
    found: dict[str, list[Found]] = {}
    with stage(home / name if home else None, work.pictures, nodes=len(cpus), cpus=cpus) as made:
        made.judge([1.0] * len(cpus))
        pack(made, work)
        plain(made, work, "memory", 1)  # the first of all pays for cold disks
        _, speeds = nodewise(made, work, 0)  # the history that the others are judged by
        for number in range(1, rounds + 1):
            for way, one in _round(made, work, number, speeds, options["spark"]):
                click.echo(f"{name}, round {number}: {way}: {one['images_per_second']:.1f} images/s", err=True)
                found.setdefault(way, []).append(one)
    return found


def _round(
    made: Stage, work: Work, number: int, speeds: Sequence[float], with_spark: bool
) -> Iterator[tuple[str, Found]]:
    yield "ceiling", plain(made, work, "memory", len(work.cpus))
    yield "plain", plain(made, work, "hdfs", 1)
    made.judge(speeds)
    yield "nodewise", nodewise(made, work, number)[0]
    yield "nodewise_packed", nodewise(made, work, number, PACKED)[0]
    size = made.cluster.size
    if with_spark:
        yield from spark(made, work, {"spark": size, "spark_warm": size, "spark_many": MANY}).items()


if __name__ == "__main__":
    main()
