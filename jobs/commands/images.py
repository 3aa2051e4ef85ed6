"""`nodewise images`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hadoop.rest.addresses import hdfs_names, namenode_addresses
from jobs.commands.options import console, hadoop_options, page_reader, progress_console, show

SIZE = re.compile(r"(?P<number>\d+(\.\d+)?) *(?P<unit>|k|M|G)B?", re.IGNORECASE)
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


class Size(click.ParamType[int]):
    """A number of bytes, written like 64MB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """In bytes; a usage error for what is not a size, or none at all."""
        parts = SIZE.fullmatch(str(value).strip())
        size = int(float(parts["number"]) * UNITS[parts["unit"].lower()]) if parts else 0
        if not size:
            self.fail(f"{value!r} is not a size of 1 byte or more: write it like 64MB, 500kB or 1.5GB", param, ctx)
        return size


@click.group()
def images() -> None:
    """Make images to try a cluster with, and put images into HDFS.

    \b
    Example:
      nodewise images make pictures -n 400
      nodewise images load pictures hdfs:///data/images
      nodewise images pack pictures hdfs:///data/packed
    """


@images.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("-n", "--count", type=int, default=400, show_default=True, help="Number of images.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed makes the same images.")
def make(directory: Path, count: int, seed: int) -> None:
    """Make test JPEGs of 500 x 375 pixels from photographs in installed Python packages.

    \b
    Example:
      nodewise images make pictures -n 400
    """
    from jobs.images import datasets  # brings scientific libraries in, which only this command needs

    with _bar("making") as advance:
        datasets.make(directory, count, seed, advance)
    console.print(f"{count} images in {directory}")


@images.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.argument("hdfs_dir")
@click.option("--overwrite", is_flag=True, help="Replace files of the same name.")
@click.option("--keep-broken", is_flag=True, help="Upload broken images too; a job gives them a row with the error.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def load(
    home: Path, /, directory: Path, hdfs_dir: str, overwrite: bool, keep_broken: bool, as_json: bool, **hadoop: Any
) -> None:
    """Upload a folder of images; files that are not images are reported and left out.

    \b
    Example:
      nodewise images load pictures hdfs:///data/images
    """
    from jobs.images import datasets

    where = page_reader(home, hadoop)
    with _bar("uploading") as advance:
        result = datasets.load(
            directory,
            hdfs_dir,
            namenode_addresses(where.conf_dir),
            where.user,
            advance,
            overwrite=overwrite,
            keep_broken=keep_broken,
            names=hdfs_names(where.conf_dir),
        )
    for path, reason in result.skipped:
        progress_console.print(f"not uploaded: {path}: {reason}", style="yellow")
    for path, reason in result.broken:
        progress_console.print(f"uploaded although broken: {path}: {reason}", style="yellow")
    body = {"loaded": result.loaded, "skipped": _reasons(result.skipped), "broken": _reasons(result.broken)}
    show(as_json, body, f"{result.loaded} images in {hdfs_dir}, {len(result.skipped)} files left behind")


@images.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.argument("hdfs_dir")
@click.option("--file-size", type=Size(), default="64MB", show_default=True, help="The most that a pack may hold.")
@click.option("--overwrite", is_flag=True, help="Replace the pack that is there.")
@click.option("--keep-broken", is_flag=True, help="Pack broken images too; a job gives them a row with the error.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def pack(
    home: Path,
    /,
    directory: Path,
    hdfs_dir: str,
    file_size: int,
    overwrite: bool,
    keep_broken: bool,
    as_json: bool,
    **hadoop: Any,
) -> None:
    """Pack a folder of images into few large files, as MXNet's im2rec does; a job reads these faster than many small
    files.

    It takes each image's class number from labels.tsv in the folder, if there is one.

    \b
    Example:
      nodewise images pack pictures hdfs:///data/packed
    """
    from jobs.images import packing

    where = page_reader(home, hadoop)
    namenodes, names = namenode_addresses(where.conf_dir), hdfs_names(where.conf_dir)
    with _bar("packing") as advance:
        result = packing.pack(
            directory, hdfs_dir, namenodes, where.user, file_size, advance, keep_broken, overwrite, names
        )
    for path, reason in result.skipped:
        progress_console.print(f"not packed: {path}: {reason}", style="yellow")
    for path, reason in result.broken:
        progress_console.print(f"packed although broken: {path}: {reason}", style="yellow")
    for path in result.alone:
        progress_console.print(f"a file of its own: {path}: it contains RecordIO's marker", style="yellow")
    body = {
        "packed": result.packed,
        "files": result.files,
        "alone": list(map(str, result.alone)),
        "skipped": _reasons(result.skipped),
        "broken": _reasons(result.broken),
    }
    alone = f", {len(result.alone)} beside them" if result.alone else ""
    text = f"{result.packed} images in {result.files} packs in {hdfs_dir}{alone}, {len(result.skipped)} left behind"
    show(as_json, body, text)


def _reasons(files: Iterable[tuple[Path, str]]) -> list[dict[str, str]]:
    return [{"path": str(path), "reason": reason} for path, reason in files]


@contextmanager
def _bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar; yields what is to be called with (done, total)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=progress_console) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
