"""Turns stored files into an Arrow table with one row for each block, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa

from hadoop.client.blocks import BlockState, StoredBlock, StoredFile

_NAMES = pa.list_(pa.string())
SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("replication", pa.int32(), nullable=False),
        pa.field("open", pa.bool_(), nullable=False),
        pa.field("erasure_policy", pa.string(), nullable=False),
        # A file without blocks, an empty one, has one row in which the rest is null.
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("hosts", _NAMES),
        pa.field("storage_types", _NAMES),
        pa.field("cached_hosts", _NAMES),
        pa.field("state", pa.string()),
    ]
)
_NO_BLOCK = (None,) * len(StoredBlock._fields)
_ROWS = 4096


def from_files(files: Iterable[StoredFile]) -> pa.RecordBatch:
    """A batch of SCHEMA; a file's rows stand together, by offset."""
    rows = [
        (file.path, file.size_bytes, file.replication, file.is_open, file.erasure_policy, *block)
        for file in files
        for block in file.blocks or (_NO_BLOCK,)
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(SCHEMA)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.record_batch(arrays, schema=SCHEMA)


def to_files(table: pa.Table) -> Iterator[StoredFile]:
    """Turn a table back into files; only a few thousand rows are unpacked at a time."""
    for _, rows in groupby(_rows(table), key=lambda row: row["path"]):
        yield _file(list(rows))


def blocks_of(table: pa.Table) -> pa.Table:
    """The rows that are blocks."""
    return table.filter(table["offset"].is_valid())


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=_ROWS):
        yield from batch.to_pylist()


def _file(rows: list[dict[str, Any]]) -> StoredFile:
    first = rows[0]
    blocks = tuple(_block(row) for row in rows if row["offset"] is not None)
    return StoredFile(
        first["path"], first["size_bytes"], blocks, first["replication"], first["open"], first["erasure_policy"]
    )


def _block(row: dict[str, Any]) -> StoredBlock:
    return StoredBlock(
        row["offset"],
        row["length"],
        tuple(row["hosts"]),
        tuple(row["storage_types"]),
        tuple(row["cached_hosts"]),
        BlockState(row["state"]),
    )
