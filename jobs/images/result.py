"""The rows of a finished job, read back from its output."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hadoop.client.blocks import list_files
from hadoop.client.filesystem import FileSystem
from jobs.errors import JobError
from jobs.images.accuracy import Accuracy
from jobs.images.rows import SCHEMA, TENSORS_KEY


def rows(filesystem: FileSystem, output: str, errors_only: bool = False) -> list[dict[str, Any]]:
    """Every row below `output`, by path; JobError when there are no results, HadoopError when there is no such path."""
    files = [file.path for file in list_files(filesystem, output) if file.path.endswith(".parquet")]
    if not files:
        raise JobError(f"{output} holds no results", remedy="is it the output of a finished job? `nodewise job list`")
    try:
        tables = [_rows(filesystem.read(path)) for path in files]
    except (pa.ArrowException, ValueError) as error:
        raise JobError(f"{output} does not hold the results of a job ({str(error).splitlines()[0]})") from error
    found: list[dict[str, Any]] = pa.concat_tables(tables).sort_by("path").to_pylist()
    return [row for row in found if row["error"] or not errors_only]


def _rows(content: bytes) -> pa.Table:
    """Those of a classifier, or of a network that gives tensors; pa.ArrowException when there are neither."""
    table = pq.read_table(io.BytesIO(content))
    if TENSORS_KEY in (table.schema.metadata or {}):
        return table
    if missing := [name for name in SCHEMA.names if name not in table.column_names]:
        raise pa.ArrowInvalid(f"it has no column {missing[0]}")
    return table.select(SCHEMA.names)


def row_text(row: Mapping[str, Any]) -> tuple[str, str]:
    """What a row says of its image, for a table: the class and its score, or how many numbers there are."""
    if row["error"]:
        return row["error"], ""
    if "class_name" in row:
        return row["class_name"], f"{row['score']:.4f}"
    lists = (f"{name}: {len(value)} numbers" for name, value in row.items() if isinstance(value, list))
    return ", ".join(lists), ""


def check_classified(output: str, found: Sequence[Mapping[str, Any]]) -> None:
    """JobError when the rows have no classes that could be right."""
    if found and "class_name" not in found[0]:
        raise JobError(f"{output} holds tensors and no classes", remedy="--truth is for the results of classifiers")


def accuracy_json(known: Accuracy) -> dict[str, Any]:
    """How often a job was right, for programs; `ratio` is None when the truth of no image is known."""
    return asdict(known) | {"ratio": known.ratio}
