"""The rows of a finished job, read back from its output."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hadoop.blocks import list_files
from hadoop.filesystem import FileSystem
from jobs.errors import JobError


def rows(filesystem: FileSystem, output: str, errors_only: bool = False) -> list[dict[str, Any]]:
    """Every row below `output`, by path; JobError when there are no results, HadoopError when there is no such path."""
    files = [file.path for file in list_files(filesystem, output) if file.path.endswith(".parquet")]
    if not files:
        raise JobError(f"{output} holds no results: is it the output of a finished job? `nodewise job list`")
    table = pa.concat_tables(pq.read_table(io.BytesIO(filesystem.read(path))) for path in files).sort_by("path")
    found: list[dict[str, Any]] = table.to_pylist()
    return [row for row in found if row["error"] or not errors_only]
