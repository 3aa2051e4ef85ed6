"""The rows of a finished job, read back from its output."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hadoop.blocks import list_files
from hadoop.filesystem import FileSystem
from jobs.errors import JobError

COLUMNS = ["path", "class_id", "class_name", "score", "top5", "node_name", "engine", "error"]


def rows(filesystem: FileSystem, output: str, errors_only: bool = False) -> list[dict[str, Any]]:
    """Every row below `output`, by path; JobError when there are no results, HadoopError when there is no such path."""
    files = [file.path for file in list_files(filesystem, output) if file.path.endswith(".parquet")]
    if not files:
        raise JobError(f"{output} holds no results: is it the output of a finished job? `nodewise job list`")
    try:
        tables = [pq.read_table(io.BytesIO(filesystem.read(path)), columns=COLUMNS) for path in files]
    except (pa.ArrowException, ValueError) as error:
        raise JobError(f"{output} does not hold the results of a job ({str(error).splitlines()[0]})") from error
    found: list[dict[str, Any]] = pa.concat_tables(tables).sort_by("path").to_pylist()
    return [row for row in found if row["error"] or not errors_only]
