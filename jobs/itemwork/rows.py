"""The rows of a whole job, out of its journal."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from jobs.application.journal import Record
from jobs.itemwork.commits import commits


def rows_by_node(records: Iterable[Record]) -> dict[str, list[pa.Table]]:
    """For each node the tables of its leases, in the order in which they were committed."""
    tables: dict[str, list[pa.Table]] = {}
    for commit in commits(records):
        with pa.ipc.open_stream(commit.rows) as stream:
            tables.setdefault(commit.node_name, []).append(stream.read_all())
    return tables
