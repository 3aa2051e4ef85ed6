"""`nodewise task outputs`: the files that a task left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import click
from rich.table import Column, Table

from infosvc.wire.client import InfoClient
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.terminal_text import moment, plain
from jobs.commands.service_options import service_options
from jobs.commands.task.task_shown import console, json_option, print_json


@click.group()
def outputs() -> None:
    """See and fetch the files that a task left in HDFS, once it has succeeded.

    \b
    Example:
      nodewise task outputs ls task_0f1e2d3c4b5a6978
      nodewise task outputs get task_0f1e2d3c4b5a6978 model/weights.bin --to results
    """


@outputs.command()
@click.argument("task_id")
@json_option
@service_options
@click.pass_obj
def ls(home: Path, /, service: ServiceAddress, task_id: str, as_json: bool) -> None:
    """List the files that a task left.

    \b
    Example:
      nodewise task outputs ls task_0f1e2d3c4b5a6978
    """
    found = service.client(home).task_outputs(task_id)
    if as_json:
        print_json(found.to_json())
        return
    table = Table(Column("file", no_wrap=True), Column("bytes", justify="right"), "written", box=None)
    for one in found.files:
        table.add_row(plain(one.path), str(one.size_bytes), moment(one.modified_at))
    console().print(table)
    if not found.whole:
        click.echo(f"there are more in {found.output}", err=True)


@outputs.command()
@click.argument("task_id")
@click.argument("names", nargs=-1, metavar="[FILE]...")
@click.option(
    "--to", "folder", type=click.Path(file_okay=False, path_type=Path), default=".", help="Folder that gets them."
)
@click.option("--overwrite", is_flag=True, help="Replace files that are there.")
@json_option
@service_options
@click.pass_obj
def get(
    home: Path,
    /,
    service: ServiceAddress,
    task_id: str,
    names: Sequence[str],
    folder: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Fetch files that a task left, all if none is named; each is there when all of it has come.

    \b
    Example:
      nodewise task outputs get task_0f1e2d3c4b5a6978 --to results
    """
    client = service.client(home)
    wanted = names or _all(client, task_id)
    for name in wanted:
        target = folder / checked(name)
        if target.exists() and not overwrite:
            raise click.ClickException(f"{target} exists: choose another folder by --to, or use --overwrite")
    came = []
    for name in wanted:
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            size = client.get_output(task_id, name, target)
        except OSError as error:
            raise click.ClickException(f"{target} cannot be written: {error.strerror}") from error
        came.append({"path": name, "file": str(target), "size_bytes": size})
        if not as_json:
            click.echo(plain(f"{target}: {size:,} bytes"))
    if as_json:
        print_json(came)


def _all(client: InfoClient, task_id: str) -> list[str]:
    found = client.task_outputs(task_id)
    if not found.whole:
        raise click.ClickException(f"these are too many files to fetch at once: name those you want of {found.output}")
    return [one.path for one in found.files]


def checked(name: str) -> str:
    """A name that leads nowhere but below a folder; ClickException for another, as it is the program that chose it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise click.ClickException(f"{plain(name)!r} is not the path of a file below the task's output")
    return name
