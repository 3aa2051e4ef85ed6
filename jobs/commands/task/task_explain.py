"""`nodewise task explain`: why a task runs where it runs."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Column, Table

from infosvc.wire.fields import answer_of
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.terminal_text import moment, plain
from jobs.commands.service_options import service_options
from jobs.commands.task.task_shown import console, json_option, print_json, short


@click.command()
@click.argument("task_id")
@click.option("--attempt", type=click.IntRange(1), help="Which start of it  [default: the last].")
@json_option
@service_options
@click.pass_obj
def explain(home: Path, /, service: ServiceAddress, task_id: str, attempt: int | None, as_json: bool) -> None:
    """Explain why a task runs where it runs: which nodes may run it, which had room, and how they were ordered.

    It is what could be seen a moment after YARN had decided.

    \b
    Example:
      nodewise task explain task_0f1e2d3c4b5a6978
    """
    found = service.client(home).task_decision(task_id, attempt)
    if as_json:
        print_json(answer_of(found))
        return
    click.echo(plain(f"{found.node_name}, seen at {moment(found.at)}: {found.said}"))
    numbers = (Column(name, justify="right") for name in ("score", "free MB", "free cores"))
    table = Table("node", *numbers, "may run it", "had room", box=None)
    has_ready = any(one.ready_seconds is not None for one in found.nodes)
    if has_ready:
        table.add_column("ready after")
        table.add_column("asked for first")
    for one in found.nodes:
        words = ["yes" if one.allowed else "no", "yes" if one.has_room else "no"]
        if has_ready:
            words += [_seconds(one.ready_seconds), "yes" if one.preferred else "no"]
        table.add_row(plain(one.node_name), short(one.score), str(one.free_mb), str(one.free_vcores), *words)
    console().print(table)


def _seconds(ready_seconds: float | None) -> str:
    return "" if ready_seconds is None else f"{ready_seconds:.2g} s"
