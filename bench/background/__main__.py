"""`scripts/bench background`: applications on nodes of which two are busy, with the plug-in and without, in turns."""

from __future__ import annotations

import datetime
import json
import os
import sys
from pathlib import Path

import click

from bench.background.scene import APPLICATIONS, busy, enrol, settle, turn
from bench.background.table import TITLES, Rounds, markdown
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, keep
from bench.stage import Stage, stage
from hadoop.errors import HadoopError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", "names", multiple=True, type=click.Choice(list(TITLES)), help="Only these.  [default: all]")
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
    """Measure the makespan of applications that go anywhere, with two of four nodes busy.

    It takes about twenty minutes on two cores.

    \b
    Examples:
      scripts/bench background
      scripts/bench background --only shell --rounds 1 --output /tmp/quick
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        click.echo("Error: two cores are needed, one of them busy", err=True)
        sys.exit(1)
    steal, load = machine.Steal(), os.getloadavg()[0]
    found: dict[str, Rounds] = {name: [] for name in names or APPLICATIONS}
    cpus = (cores[0], cores[0], cores[-1], cores[-1])
    try:
        with stage(None, pictures=0, cpus=cpus) as made, busy(cores[0], programs):
            enrol(made)
            for number in range(rounds):
                for name, one in _round(made, number, list(found), containers, steps).items():
                    found[name] = [*found[name], one]
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    record = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(output.parent),
        "versions": machine.versions(),
        "steal_ratio": steal.ratio(),
        "load_before": load,
        "containers": containers,
        "steps": steps,
        "programs": programs,
        "rounds": found,
    }
    text = markdown(record)
    click.echo(json.dumps(record, indent=1) if as_json else text)
    click.echo(f"kept in {keep(output, 'background', record, text)}", err=True)


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
            found[name][way] = measured = APPLICATIONS[name](made, containers, steps)
            said = f"{measured['seconds']:.1f} s, {measured['on_busy']} of {measured['containers']} on busy nodes"
            click.echo(f"round {number + 1}, {way} the plug-in, {name}: {said}", err=True)
    return found


if __name__ == "__main__":
    main()
