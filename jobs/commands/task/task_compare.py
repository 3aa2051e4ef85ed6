"""`nodewise task compare`: tasks side by side, by the values that their programs have reported."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.table import Column, Table

from infosvc.wire.client import InfoClient
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.tasks import MOST_POINTS, Task, TaskCurve
from infosvc.wire.terminal_text import plain
from jobs.commands.service_options import service_options
from jobs.commands.task.task_shown import console, json_option, print_json, short
from jobs.commands.task.task_values import NOTHING
from jobs.kinds.task.reported import choose_evenly

MOST_ROWS = 40
Curves = Mapping[str, TaskCurve]


@click.command()
@click.argument("task_ids", metavar="TASK_ID...", nargs=-1, required=True)
@click.option("--value", "name", help="Only the value of this name, by step.")
@json_option
@service_options
@click.pass_obj
def compare(home: Path, /, service: ServiceAddress, task_ids: Sequence[str], name: str | None, as_json: bool) -> None:
    """Show the last value of everything that tasks have reported, one task a row; with --value one curve side by side.

    In a row of curves each task has what it had last reported by that step.

    \b
    Example:
      nodewise task compare task_0f1e2d3c4b5a6978 task_8796a5b4c3d2e1f0
      nodewise task compare task_0f1e2d3c4b5a6978 task_8796a5b4c3d2e1f0 --value loss
    """
    client = service.client(home)
    found = [(client.task(task_id), _curves(client, task_id, name)) for task_id in dict.fromkeys(task_ids)]
    if as_json:
        print_json([_as_json(task, curves, name) for task, curves in found])
    elif not any(curves for _, curves in found):
        click.echo(f"none of these tasks has reported {name}" if name else NOTHING)
    else:
        console().print(_by_step(found, name) if name else _last_values(found))


def _curves(client: InfoClient, task_id: str, name: str | None) -> Curves:
    """Those of one task by name, as precise as they come for one name."""
    curves = client.task_values(task_id, points=MOST_POINTS if name else None).curves
    return {one.name: one for one in curves if name in (None, one.name)}


def _as_json(task: Task, curves: Curves, name: str | None) -> dict[str, object]:
    head = {"task_id": task.task_id, "name": task.name, "state": task.state.value}
    if name:
        return head | {"value": name, "points": curves[name].points if curves else []}
    return head | {"values": {one.name: one.last for one in curves.values()}}


def _last_values(found: Sequence[tuple[Task, Curves]]) -> Table:
    names = sorted({name for _, curves in found for name in curves})
    table = Table(Column("task", no_wrap=True), "name", "state", box=None)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for task, curves in found:
        last = [short(curves[name].last if name in curves else None) for name in names]
        table.add_row(task.task_id, plain(task.name), task.state, *last)
    return table


def _by_step(found: Sequence[tuple[Task, Curves]], name: str) -> Table:
    table = Table(Column("step", justify="right", no_wrap=True), box=None)
    for task, _ in found:
        table.add_column(f"{task.task_id}\n{plain(task.name)}", justify="right", no_wrap=True)
    lines = [curves[name].points if curves else () for _, curves in found]
    steps = sorted({step for points in lines for step, _, _ in points})
    for step in (steps[place] for place in choose_evenly(len(steps), MOST_ROWS)):
        table.add_row(str(step), *(short(value_by(points, step)) for points in lines))
    return table


def value_by(points: Sequence[tuple[int, float, float]], step: int) -> float | None:
    """The value that was reported last up to a step; None before the first and after the last.

    >>> value_by([(0, 1.0, 0.9), (10, 2.0, 0.5)], 7)
    0.9
    """
    place = bisect_right(points, step, key=lambda point: point[0])
    return points[place - 1][2] if place and step <= points[-1][0] else None
