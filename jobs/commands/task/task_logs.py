"""`nodewise task logs`: what the program of a task has printed."""

from __future__ import annotations

import json
from pathlib import Path

import click

from infosvc.wire.service_options import ServiceAddress
from jobs.commands.asking.task_printed import read
from jobs.commands.service_options import service_options


@click.command()
@click.argument("task_id")
@click.option("-f", "--follow", "follows", is_flag=True, help="Go on until the task ends.")
@click.option("--attempt", type=click.IntRange(1), help="Which start of it  [default: the last].")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
@service_options
@click.pass_obj
def logs(
    home: Path, /, service: ServiceAddress, task_id: str, follows: bool, attempt: int | None, as_json: bool
) -> None:
    """Print what a task's program has printed: its stdout to stdout, its stderr to stderr.

    What it printed stays when its node is lost, but for the last second.

    \b
    Example:
      nodewise task logs task_0f1e2d3c4b5a6978 -f
    """
    for printed in read(service.client(home), task_id, attempt, follows):
        if as_json:
            for line in printed.text.splitlines():
                click.echo(json.dumps(printed._replace(text=line)._asdict()))
        else:
            click.echo(printed.text, nl=not printed.text.endswith("\n"), err=printed.stream == "stderr")
