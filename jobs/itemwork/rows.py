"""The rows of a whole job, out of its journal, one lease at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from jobs.application.journal import Record
from jobs.itemwork.commits import commits


def node_rows(records: Iterable[Record]) -> Iterator[tuple[str, pa.Table]]:
    """Yield the node and the table of each lease, in the order in which they were committed."""
    for commit in commits(records):
        with pa.ipc.open_stream(commit.rows) as stream:
            yield commit.node_name, stream.read_all()
