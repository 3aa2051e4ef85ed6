"""The rows of a finished job, read back from its output."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from hadoop.client.blocks import list_files
from hadoop.client.filesystem import FileSystem
from jobs.errors import JobError
from jobs.images.accuracy import Accuracy
from jobs.images.rows import SCHEMA


def rows(filesystem: FileSystem, output: str, errors_only: bool = False) -> list[dict[str, Any]]:
    """Every row below `output`, by path; JobError when there are no results, HadoopError when there is no such path."""
    files = [file.path for file in list_files(filesystem, output) if file.path.endswith(".parquet")]
    if not files:
        raise JobError(f"{output} holds no results: is it the output of a finished job? `nodewise job list`")
    try:
        tables = [pq.read_table(io.BytesIO(filesystem.read(path)), columns=SCHEMA.names) for path in files]
    except (pa.ArrowException, ValueError) as error:
        raise JobError(f"{output} does not hold the results of a job ({str(error).splitlines()[0]})") from error
    found: list[dict[str, Any]] = pa.concat_tables(tables).sort_by("path").to_pylist()
    return [row for row in found if row["error"] or not errors_only]


def accuracy_json(known: Accuracy) -> dict[str, Any]:
    """How often a job was right, for programs; `ratio` is None when the truth of no picture is known."""
    return asdict(known) | {"ratio": known.ratio}


def accuracy_table(known: Accuracy) -> Table:
    """How often a job was right, by class and in all."""
    table = Table("class", title_justify="left", caption_justify="left")
    for heading in ("right", "of", "accuracy"):
        table.add_column(heading, justify="right")
    for name, (right, of) in known.by_class.items():
        table.add_row(name, str(right), str(of), f"{right / of:.1%}")
    table.add_section()
    total = known.right + known.wrong
    ratio = "unknown" if known.ratio is None else f"{known.ratio:.1%}"
    table.add_row("all", str(known.right), str(total), ratio, style="bold")
    if known.unknown:
        table.caption = f"The truth of {known.unknown} pictures is not known: their names are not in the table."
    return table
