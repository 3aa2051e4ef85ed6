"""`scripts/bench inference`: the plain loop, nodewise and Spark on the same cores, in turns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from bench.inference import table
from bench.inference.ways import PACKED, Found, Work, nodewise, pack, plain, spark
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.stage import Stage, stage
from hadoop.errors import HadoopError
from locality.program_names import FORMER

MANY = 32
"""Partitions for Spark that even uneven nodes out, as one who knows about them would choose."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--pictures", type=click.IntRange(10), default=1500, show_default=True, help="How many.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Rounds in turns.")
@click.option("--engine", type=click.Choice(sorted(FORMER)), default="mxnet_alexnet", show_default=True)
@click.option(
    "--weights", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="For engines that need some."
)
@click.option("--batch", type=click.IntRange(1), default=32, show_default=True, help="Images per inference.")
@click.option("--spark/--no-spark", default=True, show_default=True, help="The same work by Spark, too.")
@click.option("--home", type=click.Path(file_okay=False, path_type=Path), help="Folder of the clusters' homes, kept.")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=RESULTS, help="Folder for the results."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(rounds: int, home: Path | None, output: Path, as_json: bool, **options: Any) -> None:
    """Measure images per second, makespan and time to the first result on even and on uneven nodes.

    \b
    Examples:
      scripts/bench inference
      scripts/bench inference --pictures 100 --rounds 1 --output /tmp/quick
      scripts/bench inference --no-spark --engine onnx_alexnet --weights photos.params
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        click.echo("Error: two cores are needed to make nodes uneven", err=True)
        sys.exit(1)
    first, last = cores[0], cores[-1]
    scenes = {"even": (first, last), "uneven": (first, first, first, last)}
    since = machine.Since()
    try:
        found = {name: _scene(name, cpus, rounds, home, options) for name, cpus in scenes.items()}
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
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
