"""Proves that every item has exactly one row, in 8 bytes for each item."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jobs.errors import JobError


class Tally:
    """Counts rows and their different paths, of which it keeps hashes alone.

    Different hashes prove different paths. Two paths share one of 2^64 hashes by chance once in ten million jobs of two
    million items; such a job would be refused, never stored wrongly.
    """

    def __init__(self, items: int) -> None:
        self._items = items
        self._hashes = np.empty(items, np.int64)
        self._rows = self._kept = 0

    def add(self, table: pa.Table) -> None:
        """Count the rows of a table."""
        self._rows += table.num_rows
        if self._rows <= self._items:
            begin, self._kept = self._kept, self._rows
            self._hashes[begin : self._kept] = [hash(path) for path in table.column("path").to_pylist()]

    def check(self) -> None:
        """JobError unless there are as many rows as items, each with a path of its own."""
        hashes = self._hashes[: self._kept]
        hashes.sort()
        paths = int(np.count_nonzero(np.diff(hashes))) + (len(hashes) > 0)
        if not self._rows == paths == self._items:
            raise JobError(
                f"there are {self._rows} rows of {paths} items for {self._items} items",
                remedy="nothing was stored; run the job again and report this",
            )
