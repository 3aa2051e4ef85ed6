"""`scripts/bench background`: applications on nodes of which two are busy, with the plug-in and without, in turns."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from bench.background.order import measure_followed
from bench.background.scene import APPLICATIONS, busy, enrol, measure_last, settle, turn
from bench.background.table import TITLES, Rounds, markdown
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.stage import Stage, stage
from hadoop.errors import HadoopError

PARTS = (*TITLES, "order")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", "names", multiple=True, type=click.Choice(PARTS), help="Only these.  [default: all]")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Rounds in turns.")
@click.option("--containers", type=click.IntRange(1, 3), default=3, show_default=True, help="Of each application.")
@click.option("--steps", type=click.IntRange(1), default=120_000_000, show_default=True, help="Work of a container.")
@click.option("--programs", type=click.IntRange(1), default=6, show_default=True, help="What keeps the CPU busy.")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=RESULTS, help="Folder for the results."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    names: tuple[str, ...], rounds: int, containers: int, steps: int, programs: int, output: Path, as_json: bool
) -> None:
    """Measure the makespan of applications that go anywhere, with two of four nodes busy, and who follows the order.

    It takes about forty minutes on two cores.

    \b
    Examples:
      scripts/bench background
      scripts/bench background --only shell --rounds 1 --output /tmp/quick
      scripts/bench background --only order
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        click.echo("Error: two cores are needed, one of them busy", err=True)
        sys.exit(1)
    since = machine.Since()
    found: dict[str, Rounds] = {name: [] for name in APPLICATIONS if name in (names or PARTS)}
    cpus = (cores[0], cores[0], cores[-1], cores[-1])
    try:
        with stage(None, pictures=0, cpus=cpus) as made:
            if found:
                with busy(cores[0], programs):
                    enrol(made)
                    for number in range(rounds):
                        for name, one in _round(made, number, list(found), containers, steps).items():
                            found[name] = [*found[name], one]
            ways = ("with", "without") if "order" in (names or PARTS) else ()
            order = {way: measure_followed(made, way == "with") for way in ways}
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    record = since.heading(output.parent, machine.versions()) | {
        "containers": containers,
        "steps": steps,
        "programs": programs,
        "rounds": found,
        "followed": order,
    }
    tell("background", record, markdown(record), as_json, output)


def _round(
    made: Stage, number: int, names: list[str], containers: int, steps: int
) -> dict[str, dict[str, dict[str, float]]]:
    """By application and way; who goes first changes every round."""
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in names}
    ways = ("without", "with") if number % 2 == 0 else ("with", "without")
    for way in ways:
        turn(made, way == "with")
        for name in names:
            settle(made)
            found[name][way] = one = measure_last(made, APPLICATIONS[name](made, containers, steps))
            said = f"{one['seconds']:.1f} s, {one['on_busy']} of {one['containers']} on busy nodes"
            click.echo(f"round {number + 1}, {way} the plug-in, {name}: {said}", err=True)
    return found


if __name__ == "__main__":
    main()
