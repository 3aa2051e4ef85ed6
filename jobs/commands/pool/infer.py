"""`nodewise infer`: what a pool's network says of single pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from jobs.commands.options import hadoop_options, page_reader, show
from jobs.errors import JobError
from jobs.kinds.pool.client import Pool, Pools
from jobs.kinds.pool.wishes import LARGEST_PICTURE, Picture

IN_HDFS = "hdfs:"
"""How the name of a picture begins that is not in a file of this machine."""
AT_ONCE = 32
"""Pictures that are asked about together, so that workers look at some of them in one batch."""
BEST = 5
"""So many classes a row has."""


@click.command()
@click.argument("pictures", nargs=-1, required=True, metavar="PICTURE...")
@click.option("--pool", "pool_name", required=True, metavar="NAME", help="The pool whose network looks at them.")
@click.option("--top", type=click.IntRange(1, BEST), default=BEST, show_default=True, help="Best classes of each.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, 60, min_open=True),
    default=Picture().seconds,
    show_default=True,
    help="Seconds in which each has to have its row.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def infer(
    home: Path, /, pictures: Sequence[str], pool_name: str, top: int, timeout: float, as_json: bool, **hadoop: Any
) -> None:
    """Ask a pool of your own about single pictures: files of this machine, or hdfs:// paths.

    It exits with 1 when one of them could not be looked at, and shows what it knows of the others.

    \b
    Example:
      nodewise infer cat.jpg hdfs:///data/images/dog.jpg --pool photos --top 1
    """
    where = page_reader(home, hadoop)
    pool = Pools(where.conf_dir, where.user).find(pool_name)
    _ = pool.spec  # read once, before many ask
    with ThreadPoolExecutor(min(AT_ONCE, len(pictures))) as threads:
        found = list(threads.map(partial(_try, pool, timeout), pictures))
    asked = [one for one in found if not isinstance(one, JobError)]
    rows = [{**row, "top5": row["top5"][:top]} if row.get("top5") else row for row in asked]
    if rows:
        show(as_json, rows, _table(rows))
    if refused := [one for one in found if isinstance(one, JobError)]:
        raise refused[0]
    if any(row["error"] for row in rows):
        click.get_current_context().exit(1)


def _try(pool: Pool, seconds: float, picture: str) -> dict[str, Any] | JobError:
    """The row of one picture, or why it has none."""
    try:
        return _ask(pool, seconds, picture)
    except JobError as error:
        return error


def _ask(pool: Pool, seconds: float, picture: str) -> dict[str, Any]:
    """The row of one picture."""
    if picture.startswith(IN_HDFS):
        return pool.infer(Picture(name=picture, path=picture, seconds=seconds))
    try:
        with Path(picture).open("rb") as file:
            content = file.read(LARGEST_PICTURE + 1)  # one byte more is refused, however many there are
    except OSError as error:
        raise JobError(
            f"{picture} cannot be read: {error.strerror}",
            remedy="name a file of this machine, or one of HDFS as hdfs:///folder/name",
        ) from None
    return pool.infer(Picture(name=picture, seconds=seconds), content)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(Column("picture", overflow="fold"), "class", "score", Column("node", no_wrap=True), "ms")
    for row in rows:
        lines = _lines(row)
        for number, (said, score) in enumerate(lines):
            about = (row["path"], row["node_name"], f"{row['milliseconds']:.0f}") if number == 0 else ("", "", "")
            table.add_row(about[0], said, score, about[1], about[2])
    return table


def _lines(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a row says: an error, its best classes with their scores, or how many numbers there are."""
    if row["error"]:
        return [(str(row["error"]), "")]
    if "top5" in row:
        return [(one["class_name"], f"{one['score']:.4f}") for one in row["top5"]]
    return [(", ".join(f"{name}: {len(one)} numbers" for name, one in row.items() if isinstance(one, list)), "")]
