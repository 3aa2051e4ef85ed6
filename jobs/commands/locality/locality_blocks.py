"""`nodewise locality blocks`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from rich.console import Group
from rich.table import Column, Table

from hadoop.client import jvm
from hadoop.client.arrow_table import blocks_of
from hadoop.client.disk_cache import take_current
from hadoop.client.filesystem import FileSystem
from hadoop.client.snapshots import Snapshot
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.service_options import ServiceAddress
from jobs.commands.options import hadoop_home, hadoop_options, progress_console, show
from jobs.commands.service_options import service_options
from jobs.division import publishing
from jobs.division.distribution import Spread, spread_of
from jobs.errors import JobError


@click.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--arrow", type=click.Path(dir_okay=False, path_type=Path), help="Write one row a block to this file.")
@click.option("--fresh", is_flag=True, help="List everything again, even what did not change.")
@click.option("--publish", is_flag=True, help="Write what each node holds to the information service.")
@click.option(
    "--every", type=click.FloatRange(1), metavar="SECONDS", help="With --publish: go on, and look this often."
)
@service_options
@hadoop_options
@click.pass_obj
def blocks(
    home: Path,
    /,
    path: str,
    as_json: bool,
    arrow: Path | None,
    fresh: bool,
    publish: bool,
    every: float | None,
    service: ServiceAddress,
    **hadoop: Any,
) -> None:
    """Show which nodes hold the blocks of a path, and name the files that no live node holds.

    A second call asks only for what changed since the first. --publish writes one value for each node, which lists
    every path with the time it was published. Only one such command may publish to a service at a time.

    \b
    Example:
      nodewise locality blocks hdfs:///data/images
      nodewise locality blocks hdfs:///data/images --arrow blocks.arrow
      nodewise locality blocks hdfs:///data/images --publish --every 30
    """
    if every and not publish:
        raise click.UsageError("--every says how often to publish: add --publish")
    jvm.start(hadoop_home(home, **hadoop))
    filesystem, kept = FileSystem(), home / "blocks"
    found = take_current(filesystem, path, kept, fresh)
    if arrow:
        _write(found, arrow)
    spreading = spread_of(found)
    show(as_json, _body(found, spreading), _text(found, spreading))
    if publish:
        with service.client(home) as client:
            publisher = Publisher(client, publishing.lifetime_seconds(client, every))
            publisher.step(found, time.monotonic())
            if every:
                _go_on(publisher, lambda: take_current(filesystem, path, kept), every)


class Publisher:
    """Keeps what the service says of one path true: writes when the blocks or the nodes changed, and in time."""

    def __init__(self, client: InfoClient, ttl_seconds: float) -> None:
        self._client = client
        self._ttl_seconds = ttl_seconds
        self._written: tuple[str, frozenset[str]] | None = None
        self._at = 0.0

    def step(self, found: Snapshot, now: float) -> None:
        """Publish if need be and say so; `now` is monotonic. InfoError and JobError as `publishing.publish`."""
        enrolled = frozenset(node.node_name for node in self._client.nodes())
        if self._written == (found.digest, enrolled) and now - self._at < self._ttl_seconds / 3:
            return
        strangers = publishing.publish(self._client, found.path, spread_of(found).nodes, enrolled, self._ttl_seconds)
        self._written, self._at = (found.digest, enrolled), now
        progress_console.print(f"published {publishing.DATA_NAME} of {found.path}, snapshot {found.digest[:12]}")
        if strangers:
            names = ", ".join(strangers)
            progress_console.print(
                f"Warning: {names} hold blocks and are not enrolled, so the service keeps nothing of them: "
                "`nodewise node add` enrols a node",
                style="yellow",
            )


def _go_on(publisher: Publisher, look: Callable[[], Snapshot], every: float) -> None:
    trouble: type[Exception] | None = None
    try:
        while True:
            time.sleep(every)
            trouble = attempt(lambda: publisher.step(look(), time.monotonic()), trouble)
    except KeyboardInterrupt:
        progress_console.print("stopped publishing; the values stay until they are stale")


def attempt(step: Callable[[], None], trouble: type[Exception] | None) -> type[Exception] | None:
    """Do a step; the kind of its failure, which is said unless it is `trouble`, that of the step before."""
    try:
        step()
    except (HadoopError, InfoError, JobError) as error:
        if trouble is not type(error):
            progress_console.print(f"Warning: {error}; trying again", style="yellow")
        return type(error)
    if trouble:
        progress_console.print("publishing works again")
    return None


def _write(found: Snapshot, file: Path) -> None:
    try:
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, found.table.schema) as writer:
            writer.write_table(blocks_of(found.table))
    except OSError as error:
        raise JobError(
            f"{file} cannot be written ({error.strerror or error})", remedy="name another file with --arrow"
        ) from None


def _body(found: Snapshot, spreading: Spread) -> dict[str, Any]:
    return {
        "path": found.path,
        "digest": found.digest,
        "listed_age_seconds": round(time.time() - found.listed_at, 3),
        "folders_listed_again": found.listed_again,
        "files": found.file_count,
        "size_bytes": found.size_bytes,
        **asdict(spreading),
    }


def _text(found: Snapshot, spreading: Spread) -> Group:
    figures = [Column(name, justify="right") for name in ("blocks", "MB", "files", "of all", "cached MB")]
    table = Table("node", "rack", *figures)
    for node in spreading.nodes:
        table.add_row(
            node.node_name,
            node.rack or "not alive",
            f"{node.blocks}",
            f"{node.bytes / 1e6:.1f}",
            f"{node.files}",
            f"{node.held_ratio:.1%}",
            f"{node.cached_bytes / 1e6:.1f}",
        )
    return Group(table, *_lines(found, spreading))


def _lines(found: Snapshot, spreading: Spread) -> list[str]:
    totals = f"{found.file_count} files, {spreading.blocks} blocks, {found.size_bytes / 1e6:.1f} MB"
    if spreading.open_files:
        totals += f"; {spreading.open_files} being written"
    if spreading.erasure_coded_files:
        totals += f"; {spreading.erasure_coded_files} erasure-coded, local only where one node holds all"
    age = time.time() - found.listed_at
    again = f"listed whole {age:.0f} s ago, {found.listed_again} of {len(found.folders)} folders again now"
    lines = [totals, f"snapshot {found.digest[:12]}, {again}"]
    if spreading.missing:
        lines += [f"Warning: {len(spreading.missing)} files have a block without any live replica:"]
        lines += [f"  {name}" for name in spreading.missing]
    return lines
