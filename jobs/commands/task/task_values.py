"""`nodewise task values`: what the program of a task has reported."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Column, Table

from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.tasks import TaskCurve
from infosvc.wire.terminal_text import sparkline
from jobs.commands.service_options import service_options
from jobs.commands.task.task_shown import console, json_option, print_json, short

WIDTH = 40  # of a curve
NOTHING = "no value was reported: a program reports one by printing a line such as `nodewise: loss=0.31 step=120`"


@click.command()
@click.argument("task_id")
@click.option("--attempt", type=click.IntRange(1), help="Which start of it  [default: all, joined].")
@click.option("--used", is_flag=True, help="What its processes use instead: cores, memory, disk, network.")
@json_option
@service_options
@click.pass_obj
def values(
    home: Path, /, service: ServiceAddress, task_id: str, attempt: int | None, used: bool, as_json: bool
) -> None:
    """Show the values that a task's program has reported, such as its loss, with a curve over its steps.

    A program reports values by printing a line to stdout: `nodewise: loss=0.31 accuracy=0.9 step=120`.

    \b
    Example:
      nodewise task values task_0f1e2d3c4b5a6978
      nodewise task values task_0f1e2d3c4b5a6978 --used
    """
    found = service.client(home).task_values(task_id, attempt, of="used" if used else None)
    if as_json:
        print_json(found.to_json())
    elif not found.curves:
        click.echo("nothing is known of what it used: the first figures come after 5 s" if used else NOTHING)
    else:
        table = Table(Column("value", no_wrap=True), box=None)
        for heading in ("last", "least", "most", "count"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("curve", no_wrap=True)
        for one in found.curves:
            table.add_row(one.name, *map(short, (one.last, one.least, one.most)), str(one.count), _line(one))
        console().print(table)


def _line(curve: TaskCurve) -> str:
    points = [(float(step), value) for step, _, value in curve.points]
    return sparkline(points, points[0][0], points[-1][0], min(WIDTH, len(points)))
