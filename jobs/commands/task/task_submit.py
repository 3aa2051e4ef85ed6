"""`nodewise task submit`: a program, with the folder that it needs, as a task."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from infosvc.wire.client import InfoClient
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.tasks import TaskSpec, TaskState
from jobs.commands.made_options import collect, made_options
from jobs.commands.service_options import service_options
from jobs.commands.task.folder_origin import origin_of
from jobs.commands.task.folder_tar import pack
from jobs.commands.task.task_waiting import follow, sentence


@click.command()
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGUMENT]...")
@made_options(TaskSpec, without=("argv", "files", "commit", "changes"))
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder whose files lie beside the program where it runs, at most 256 MiB.",
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
    """
    client = service.client(home)
    task = client.submit_task(collect(TaskSpec, given, argv=tuple(argv), **send(client, folder)), idempotency_key)
    if wait:
        task = follow(client, task.task_id)
    if as_json:
        click.echo(json.dumps(task.to_json(), indent=1))
    else:
        click.echo(sentence(task) if wait else f"{task.task_id} {task.state}")
    if task.state.is_final and task.state is not TaskState.SUCCEEDED:
        sys.exit(1)


def send(client: InfoClient, folder: Path | None) -> dict[str, Any]:
    """What a task says of the files that go along, which the service has then: their SHA-256, and what git knows."""
    if folder is None:
        return {}
    with TemporaryDirectory(prefix="nodewise-task-") as place:
        archive = Path(place) / "files.tar"
        pack(folder, archive)
        return {"files": client.put_files(archive), **asdict(origin_of(folder))}
