"""What is recorded of every lease that was committed: who did which items when, and their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from jobs.application.calls import Refused
from jobs.application.journal import Record
from jobs.images.rows import SCHEMA, is_of_rows
from jobs.itemwork.messages import Item
from locality.types import Part, Plan

COMMITTED = "committed"
_KEYS = {"items": "images", "local_items": "local_images"}
"""Fields that have another name in the journal, where earlier versions wrote it."""
_FIELDS = {key: name for name, key in _KEYS.items()}


@dataclass(frozen=True)
class Commit:
    """One lease that counts; times in seconds since the job's work began, `rows` an Arrow stream.

    `parts` are (name of the block, first item in it, items); `moved_bytes` are of items that the node holds no
    replica of, and `compute_seconds` what the worker measured.
    """

    node_name: str
    container_id: str
    lease: str
    origin: str | None
    parts: Sequence[tuple[str, int, int]]
    begin: float
    end: float
    items: int
    errors: int
    local_items: int
    bytes_read: int
    moved_bytes: int
    compute_seconds: float
    rows: bytes = field(default=b"", repr=False)

    def to_record(self) -> Record:
        """As it stands in the journal."""
        body: dict[str, Any] = asdict(self)
        rows = body.pop("rows")
        return Record(COMMITTED, {_KEYS.get(name, name): value for name, value in body.items()}, rows)


def commits(records: Iterable[Record]) -> Iterator[Commit]:
    """Those of `records` that are commits."""
    for record in records:
        if record.kind == COMMITTED:
            fields = {_FIELDS.get(key, key): value for key, value in record.body.items()}
            yield Commit(**fields, rows=record.payload)


def local_and_moved(node: str, parts: Sequence[Part], items: Sequence[Item]) -> tuple[int, int]:
    """How many of the items are on the node's own disk, and the bytes of the others."""
    holders = [part.is_local(node) for part in parts for _ in range(part.items)]
    moved = sum(item.length for item, local in zip(items, holders, strict=True) if not local)
    return sum(holders), moved


def errors_in(rows: bytes, items: Sequence[Item]) -> int:
    """Rows with an error; Refused unless there is exactly one row of the results' schema for every item."""
    try:
        table = pa.ipc.open_stream(rows).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise Refused(f"the rows are no Arrow stream: {error}") from None
    if not is_of_rows(table.schema):
        raise Refused(
            f"the columns of the rows are {table.schema.names}, and have to be {SCHEMA.names} of its types, or tensors"
        )
    told, wanted = Counter(table.column("path").to_pylist()), Counter(item.name for item in items)
    if wrong := (told - wanted) + (wanted - told):
        raise Refused(f"{table.num_rows} rows for {len(items)} items, not one for each: see {next(iter(wrong))}")
    errors: int = table.num_rows - table.column("error").null_count
    return errors


def remaining(plan: Plan, records: Iterable[Record]) -> Plan:
    """The plan without the items that were committed; nodes that have nothing left are in it, too."""
    done: dict[str, list[tuple[int, int]]] = {}
    for commit in commits(records):
        for block, first, items in commit.parts:
            done.setdefault(block, []).append((first, first + items))
    for ranges in done.values():
        ranges.sort()
    return Plan(
        {
            node: tuple(left for part in parts for left in _left_of(part, done.get(part.block.name, ())))
            for node, parts in plan.parts.items()
        }
    )


def _left_of(part: Part, done: Sequence[tuple[int, int]]) -> Iterator[Part]:
    """What of a part lies in none of the ranges, which are in order."""
    at, end = part.first, part.first + part.items
    for first, last in done:
        if at < min(first, end):
            yield Part(part.block, at, min(first, end) - at)
        at = max(at, last)
    if at < end:
        yield Part(part.block, at, end - at)
