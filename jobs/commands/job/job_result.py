"""`nodewise job result`: what a job made of each image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from jobs.commands.job import tables
from jobs.commands.options import hadoop_options, session, show
from jobs.images import result as results
from jobs.images.accuracy import accuracy


@click.command()
@click.argument("output")
@click.option("--errors", is_flag=True, help="Only images that could not be classified.")
@click.option(
    "--truth",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="labels.tsv",
    help="Tell how many images were recognised, by the table that `nodewise images make` left beside them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all five classes of each image.")
@hadoop_options
@click.pass_obj
def result(home: Path, /, output: str, errors: bool, truth: Path | None, as_json: bool, **hadoop: Any) -> None:
    """List what a finished job made of each image, or how often it was right.

    \b
    Example:
      nodewise job result hdfs:///out/run1 --errors
      nodewise job result hdfs:///out/run1 --truth pictures/labels.tsv
    """
    if errors and truth:
        raise click.UsageError("--errors and --truth exclude each other: give one of them")
    found = results.rows(session(home, hadoop).filesystem, output, errors)
    if truth:
        results.check_classified(output, found)
        known = accuracy(found, truth)
        show(as_json, results.accuracy_json(known), tables.accuracy_table(known))
        return
    table = Table("picture", "class", "score", "node")
    for row in found:
        table.add_row(row["path"], *results.row_text(row), row["node_name"])
    show(as_json, found, table)
