"""`nodewise task submit`: a program, with the folder that it needs, as a task."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskState
from infosvc.wire.terminal_text import plain
from jobs.commands.asking.task_sending import send
from jobs.commands.asking.task_waiting import follow, sentence
from jobs.commands.made_options import collect, made_options
from jobs.commands.service_options import service_options
from jobs.commands.task.task_array import Indices, spread


@click.command()
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGUMENT]...")
@made_options(TaskSpec, without=("argv", "array", "files", "commit", "changes"))
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder whose files lie beside the program where it runs, at most 256 MiB.",
)
@click.option(
    "--array",
    type=Indices(),
    metavar="NUMBERS",
    help="A task for each number, such as 1-20, 0-100:10 or 1,3,7, which its program finds as ARRAY_INDEX.",
)
@click.option(
    "--idempotency-key", default="", metavar="KEY", help="Word of your own; the same again finds the task made with it."
)
@click.option("--wait", is_flag=True, help="Wait until it has ended; exit status 0 when it succeeded, else 1.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@service_options
@click.pass_obj
def submit(
    home: Path,
    /,
    service: ServiceAddress,
    argv: Sequence[str],
    folder: Path | None,
    array: Sequence[int] | None,
    idempotency_key: str,
    wait: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Ask for a program to be run once on the cluster, in a container of its own. No shell reads its arguments.

    It needs a token of role user or admin. Nothing runs until a submitter takes it: `nodewise serve --submit`.

    \b
    Example:
      nodewise task submit --name mnist --folder src --memory 2g --variable SEED=1 -- python3 train.py --epochs 3
      nodewise task submit --after task_0f1e2d3c4b5a6978 -- ./evaluate
      nodewise task submit --array 1-20 --at-once 4 --folder src -- ./sweep
    """
    if given["at_once"] and not array:
        raise click.UsageError("--at-once says how many tasks of an array run at once: give --array too")
    client = service.client(home)
    spec = collect(TaskSpec, given, argv=tuple(argv), **send(client, folder))
    asked = spread(spec, array, idempotency_key) if array else [(spec, idempotency_key)]
    tasks = [client.submit_task(one, key) for one, key in asked]
    for place, task in enumerate(tasks):
        tasks[place] = follow(client, task.task_id) if wait else task
        if not as_json:
            click.echo(plain(sentence(tasks[place])) if wait else f"{task.task_id} {task.state}")
    if as_json:
        said = [task.to_json() for task in tasks]
        click.echo(json.dumps(said if array else said[0], indent=1))
    if any(task.state.is_final and task.state is not TaskState.SUCCEEDED for task in tasks):
        sys.exit(1)
