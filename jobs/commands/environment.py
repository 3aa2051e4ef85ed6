"""`nodewise env`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from hadoop.client.filesystem import FileSystem
from hadoop.installation import worker_environment
from infosvc.wire.service_options import ServiceAddress
from jobs.application.environments import store
from jobs.application.environments.archive import contents, pack_file
from jobs.commands import made_environments, warmed_environments
from jobs.commands.options import console, filesystem_of, hadoop_options, progress_console, session, show
from jobs.commands.request_options import access
from jobs.commands.service_options import service_options

_folder = click.argument("folder", default=f"hdfs://{store.FOLDER}")

_source = click.option(
    "--python",
    "source",
    type=click.Path(file_okay=False, path_type=Path),
    default=worker_environment(),
    help="The virtual environment [default: that of this installation].",
)


@click.group()
def env() -> None:
    """Put environments into HDFS once; YARN then brings them to every node that needs them.

    `make` makes one of packages in an exact version, which nodes mount. `publish` packs a virtual environment of this
    machine, as workers use it, which nodes unpack.

    \b
    Example:
      nodewise env make onnx --version 1.32 --package onnxruntime==1.32.0
      nodewise env publish
      nodewise env list
    """


for command in (made_environments.make_, made_environments.show_, made_environments.fit_, made_environments.verify):
    env.add_command(command)
env.add_command(warmed_environments.warm)


@env.command()
@_folder
@_source
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def publish(home: Path, /, folder: str, source: Path, as_json: bool, **hadoop: Any) -> None:
    """Pack an environment and put it into HDFS; one that is there already is not packed again.

    It leaves out what a worker does not need: pip, test programs, tests and headers of packages. Nodes bring
    their own Python, of the same version.

    \b
    Example:
      nodewise env publish --python .venv-worker hdfs:///nodewise/env
    """
    filesystem = filesystem_of(home, hadoop)
    with _bar() as advance:
        made = store.publish(filesystem, source, advance, _plain(filesystem, folder))
    what = "published" if made.made else "is there already"
    said = f"{made.path} {what}: {decimal(made.packed_bytes)}, {made.files} files of {decimal(made.size_bytes)}"
    show(as_json, asdict(made), f"{said}, {made.seconds:.1f} s")


@env.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_source
@click.option(
    "--lock",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A requirements file: pack only the packages that it names.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def pack(file: Path, source: Path, lock: Path | None, as_json: bool) -> None:
    """Write an environment to a file of this machine: the archive that `publish` puts into HDFS.

    It unpacks into any folder of a machine with Debian's Python, of the same version. With --lock, it leaves out
    everything else, such as development tools or an editable installation. The same environment always gives the same
    bytes.

    \b
    Example:
      nodewise env pack worker.tar.gz --python .venv-worker
      nodewise env pack service.tar.gz --python .venv --lock requirements/service.txt
    """
    begun = time.monotonic()
    found = contents(source.absolute(), lock)
    # It is for other machines, where a path of this one means nothing, or something that is somebody else's.
    found = replace(found, base=f"/usr/bin/python{found.version}")
    with _bar() as advance:
        packed_bytes = pack_file(found, file, advance)
    body = {
        "path": str(file.absolute()),
        "files": len(found.members),
        "size_bytes": found.size_bytes,
        "packed_bytes": packed_bytes,
        "seconds": time.monotonic() - begun,
    }
    said = f"{file}: {decimal(packed_bytes)}, {len(found.members)} files of {decimal(found.size_bytes)}"
    if as_json:
        show(as_json, body, "")
    else:
        console.print(f"{said}, {body['seconds']:.1f} s", soft_wrap=True)


@env.command("list")
@_folder
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@service_options
@hadoop_options
@click.pass_obj
def list_(home: Path, /, folder: str, as_json: bool, service: ServiceAddress, **hadoop: Any) -> None:
    """List the environments in HDFS, those that were made as NAME@VERSION with the nodes that have them already.

    \b
    Example:
      nodewise env list --json
    """
    filesystem = filesystem_of(home, hadoop)
    found = store.list_published(filesystem, _plain(filesystem, folder))
    made = made_environments.list_made(filesystem, _plain(filesystem, folder), access(home, service).client())
    table = Table(Column("environment", overflow="fold"), "size", "published", "latest", Column("on", overflow="fold"))
    for one in made:
        table.add_row(one["name"], decimal(one["size_bytes"]), _moment(one["published_at"]), "", _on(one["nodes"]))
    for published in found:
        is_latest = "yes" if published.latest else ""
        table.add_row(published.path, decimal(published.size_bytes), _moment(published.published_at), is_latest, "")
    show(as_json, [*made, *(asdict(one) for one in found)], table)


@env.command()
@click.argument("name")
@_folder
@click.option("--force", is_flag=True, help="Also where the service does not tell which tasks wait to start in it.")
@service_options
@hadoop_options
@click.pass_obj
def rm(home: Path, /, name: str, folder: str, force: bool, service: ServiceAddress, **hadoop: Any) -> None:
    """Take an environment out of HDFS; while tasks or jobs use one that was made as NAME@VERSION, it is refused.

    What runs YARN tells. The tasks that shall still start in it the service tells: yours by name, those of others by
    their number. Where it does not, it is refused, too, unless you --force it. One that is published is taken out
    whoever uses it.

    \b
    Example:
      nodewise env rm onnx@1.32
      nodewise env rm worker-0123456789abcdef.tar.gz
    """
    submitter = session(home, hadoop)
    filesystem = submitter.filesystem
    plain = _plain(filesystem, folder)
    if store.is_published(name):
        removed = made_environments.Removed(store.remove(filesystem, name, plain))
    else:
        removed = made_environments.remove(submitter, access(home, service).client(), name, plain, force)
    console.print(f"{removed.name} removed")
    if not removed.has_seen_all:
        click.echo("the service did not tell whether tasks of others wait to start in it: such tasks fail", err=True)


def _on(nodes: list[str] | None) -> str:
    return "not known" if nodes is None else ", ".join(nodes) or "no node"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """A bar for a person who waits; it is told bytes done and bytes in all."""
    columns = (TextColumn("packing"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=progress_console) as bar:
        task = bar.add_task("packing", total=None, visible=False)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=True)

        yield advance


def _plain(filesystem: FileSystem, folder: str) -> str:
    """A folder of HDFS without scheme and host."""
    return str(filesystem.path(folder).toUri().getPath())
