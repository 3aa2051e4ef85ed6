"""Writes the rows of each node into its Parquet file, while only some rows and some files are in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq

from hadoop.client.filesystem import FileSystem
from jobs.itemwork.results.tally import Tally

ROWS_OF_A_GROUP = 65_536
MOST_WAITING_BYTES = 16 << 20
"""Of rows of all nodes that wait to become a row group."""
MOST_OPEN = 64
"""Files that are written at once: each costs the HDFS client a thread and some buffers."""

ReadRows = Callable[[], Iterable[tuple[str, pa.Table]]]
"""Reads all rows anew: the node and the table of each lease, in the order of the leases."""


def write_part_files(filesystem: FileSystem, folder: str, read_rows: ReadRows, tally: Tally) -> None:
    """Write `part-NODE.parquet` for each node that has rows; what has more than `MOST_OPEN` nodes is read again."""
    written: set[str] = set()
    while _write_some(filesystem, folder, read_rows, tally, written):
        pass


def _write_some(filesystem: FileSystem, folder: str, read_rows: ReadRows, tally: Tally, written: set[str]) -> bool:
    """Write the files of the first nodes that are not in `written`, to which they are added; whether any are left."""
    is_left = False
    parts: dict[str, _PartFile] = {}
    with ExitStack() as opened:
        for node_name, table in read_rows():
            if node_name in written:
                continue
            if node_name not in parts:
                if len(parts) == MOST_OPEN:
                    is_left = True
                    continue
                write = opened.enter_context(filesystem.open_writer(f"{folder}/part-{node_name}.parquet"))
                parts[node_name] = opened.enter_context(_PartFile(write, table.schema))
            tally.add(table)
            parts[node_name].add(table)
            if sum(part.waiting_bytes for part in parts.values()) > MOST_WAITING_BYTES:
                max(parts.values(), key=lambda part: part.waiting_bytes).flush()
    written.update(parts)
    return is_left


class _PartFile:
    """One file; small tables wait until together they make a row group."""

    def __init__(self, write: Callable[[bytes], None], schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(_Sink(write), schema)
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self.waiting_bytes = 0

    def __enter__(self) -> _PartFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.flush()
        self._writer.close()

    def add(self, table: pa.Table) -> None:
        """Append the rows of a lease."""
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        self.waiting_bytes += table.nbytes
        if self._waiting_rows >= ROWS_OF_A_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what waits as a row group."""
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
        self._waiting = []
        self._waiting_rows = self.waiting_bytes = 0


class _Sink(io.RawIOBase):
    """A file for pyarrow, which only appends."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._write = write
        self._size = 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """How much was written."""
        return self._size

    def write(self, piece: object) -> int:
        """Append bytes."""
        content = bytes(memoryview(piece))  # type: ignore[arg-type]
        self._write(content)
        self._size += len(content)
        return len(content)
