"""The rows of a finished job, read back from its output."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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
