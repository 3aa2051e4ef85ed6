"""How the blocks of a snapshot are spread over the nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from hadoop.client.arrow_table import blocks_of
from hadoop.client.blocks import NOT_READABLE, BlockState
from hadoop.client.snapshots import Snapshot
from infosvc.wire.fields import describe


@dataclass(frozen=True)
class NodeShare:
    """What one node holds whole; replicas make the sum over the nodes greater than what there is."""

    node_name: str = field(metadata=describe(example="127.0.1.11"))
    rack: str | None = field(metadata=describe("null for a node whose DataNode does not live", example="/default-rack"))
    blocks: int = field(metadata=describe("that it holds", example=1))
    bytes: int = field(metadata=describe("of these blocks", unit="bytes", example=1000))
    files: int = field(metadata=describe("of which it holds any block", example=1))
    held_ratio: float = field(metadata=describe("its part of all bytes of the path, 0 to 1", example=1.0))
    cached_bytes: int = field(metadata=describe("of the blocks in its cache", unit="bytes", example=0))


@dataclass(frozen=True)
class Spread:
    """The nodes, live ones without a block included, by name, and what concerns the whole path."""

    nodes: tuple[NodeShare, ...]
    blocks: int
    open_files: int
    erasure_coded_files: int
    missing: tuple[str, ...]
    """Files of which some block has no live replica."""


def spread_of(snapshot: Snapshot) -> Spread:
    """Count a block on every node that holds it whole; an erasure-coded one in several parts counts on none."""
    table, blocks = snapshot.table, blocks_of(snapshot.table)
    lost = blocks.filter(pc.is_in(blocks["state"], pa.array([state.value for state in NOT_READABLE])))
    return Spread(
        tuple(_nodes(snapshot, blocks)),
        blocks.num_rows,
        _count(table, table["open"]),
        _count(table, pc.not_equal(table["erasure_policy"], "")),
        tuple(sorted(set(lost["path"].to_pylist()))),
    )


def _nodes(snapshot: Snapshot, blocks: pa.Table) -> list[NodeShare]:
    whole = blocks.filter(pc.not_equal(blocks["state"], BlockState.ERASURE_CODED.value))
    held, cached = _count_held(whole, "hosts"), _count_held(whole, "cached_hosts")
    size_bytes = snapshot.size_bytes
    nothing = (0, 0, 0)
    return [
        NodeShare(
            name,
            snapshot.racks.get(name),
            *held.get(name, nothing),
            held.get(name, nothing)[1] / size_bytes if size_bytes else 0.0,
            cached.get(name, nothing)[1],
        )
        for name in sorted({*snapshot.racks, *held})
    ]


def _count_held(blocks: pa.Table, column: str) -> dict[str, tuple[int, int, int]]:
    """Node -> blocks, bytes and files of it in a column of node names."""
    blocks = blocks.combine_chunks()
    rows = pc.list_parent_indices(blocks[column])
    pairs = pa.table(
        {
            "node": pc.list_flatten(blocks[column]),
            "bytes": blocks["length"].take(rows),
            "path": blocks["path"].take(rows),
        }
    )
    found = pairs.group_by("node").aggregate([("bytes", "count"), ("bytes", "sum"), ("path", "count_distinct")])
    return {
        row["node"]: (row["bytes_count"], row["bytes_sum"], row["path_count_distinct"]) for row in found.to_pylist()
    }


def _count(table: pa.Table, chosen: pa.ChunkedArray) -> int:
    """Number of files in the chosen rows."""
    return len(table.filter(chosen)["path"].unique())
