"""Snapshots of the blocks below a path, which list again only the folders that changed.

A folder is listed again when a name in it appeared or vanished, or when it was not at rest: a file was still being
written, or a block had more or fewer replicas than it should have. All folders are listed again when the set of live
nodes changed or is unknown, when the totals of the path do not fit the files that were found, and after `max_age`
seconds, because nothing else shows that the balancer moved a replica or that one was cached.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from hadoop.client import arrow_table
from hadoop.client.blocks import StoredFile, list_folder
from hadoop.client.listing import Listing, Stamp, Summary
from hadoop.errors import HadoopError

MAX_AGE_SECONDS = 600.0


class Folder(NamedTuple):
    """A listed folder: its state at that time, the digest, number, bytes and rows of its files, and its subfolders.

    `space_bytes` counts every replica; `settled` says whether all of its files were at rest.
    """

    stamp: Stamp
    digest: str
    files: int
    size_bytes: int
    space_bytes: int
    rows: int
    folders: tuple[str, ...]
    settled: bool


@dataclass(frozen=True)
class Snapshot:
    """Files and blocks below a path; the rows of `table` stand folder by folder, in the order of `folders`.

    `racks` names the live DataNodes, or only those that hold blocks where the user may not see more. `listed_at`
    (Unix seconds) is when every folder was last listed, `listed_again` how many folders this snapshot had to list.
    """

    path: str
    listed_at: float
    summary: Summary
    racks: Mapping[str, str]
    folders: Mapping[str, Folder]
    table: pa.Table
    listed_again: int = 0

    @property
    def digest(self) -> str:
        """SHA-256 over every file, its size, its blocks and their holders: equal content, equal digest."""
        whole = hashlib.sha256()
        for path, folder in sorted(self.folders.items()):
            if folder.files:
                whole.update(f"{path}\0{folder.digest}\n".encode())
        return whole.hexdigest()

    @property
    def file_count(self) -> int:
        """Number of files."""
        return sum(folder.files for folder in self.folders.values())

    @property
    def size_bytes(self) -> int:
        """Bytes of all files, each counted once."""
        return sum(folder.size_bytes for folder in self.folders.values())

    @property
    def hidden(self) -> tuple[int, int, int]:
        """How many files, bytes, and bytes of all replicas the totals count beyond the files that were found."""
        space_bytes = sum(folder.space_bytes for folder in self.folders.values())
        totals = self.summary
        return totals.files - self.file_count, totals.size_bytes - self.size_bytes, totals.space_bytes - space_bytes

    def files(self) -> Iterator[StoredFile]:
        """Every file, one at a time."""
        return arrow_table.to_files(self.table)


def take(listing: Listing, path: str, before: Snapshot | None = None, max_age: float = MAX_AGE_SECONDS) -> Snapshot:
    """Take a snapshot of a path; what did not change since `before` comes from there. HadoopError when it is gone.

    This costs one call for the totals, one for the nodes, one for each folder, and the listing of what changed.
    """
    top = listing.stamp(path)
    if top is None:
        raise HadoopError(f"{path} is not in HDFS", remedy="check the path, `hdfs:///` begins at the root")
    # These are read before the listing, so that the next call sees what changes during the listing.
    empty = Snapshot(path, time.time(), listing.summary(path), listing.racks(), {}, arrow_table.SCHEMA.empty_table())
    if before and before.racks == empty.racks != {} and 0 <= empty.listed_at - before.listed_at < max_age:
        snapshot = _walk(listing, replace(empty, listed_at=before.listed_at), before, top)
        if _has_same_rest(snapshot, before):
            return snapshot
    snapshot = _walk(listing, empty, empty, top)
    return snapshot if snapshot.racks else replace(snapshot, racks=listing.holders())


def _has_same_rest(snapshot: Snapshot, before: Snapshot) -> bool:
    """Whether the totals changed by as much as the files did: appending to a file changes no folder's state."""
    return snapshot.hidden == before.hidden if snapshot.listed_again else snapshot.summary == before.summary


def _walk(listing: Listing, empty: Snapshot, known: Snapshot, top: Stamp) -> Snapshot:
    """Fill `empty` with every folder, from `known` where that is still true, else by listing it."""
    kept = _slices(known)
    folders: dict[str, Folder] = {}
    tables: list[pa.Table] = []
    listed = 0
    todo = [(empty.path, top)]
    while todo:
        path, stamp = todo.pop()
        folder = known.folders.get(path)
        if folder and folder.settled and folder.stamp == stamp:
            below = [(name, listing.stamp(name)) for name in folder.folders]
            table = kept[path]
        else:
            folder, table, below = _list(listing, path, stamp, len(empty.racks))
            listed += 1
        folders[path] = folder
        tables.append(table)
        todo += [(name, present) for name, present in below if present]
    if not listed and len(folders) == len(known.folders):
        return replace(known, summary=empty.summary, listed_again=0)
    return replace(empty, folders=folders, table=pa.concat_tables(tables).combine_chunks(), listed_again=listed)


def _slices(snapshot: Snapshot) -> dict[str, pa.Table]:
    found, first = {}, 0
    for path, folder in snapshot.folders.items():
        found[path] = snapshot.table.slice(first, folder.rows)
        first += folder.rows
    return found


def _list(
    listing: Listing, path: str, stamp: Stamp, live_nodes: int
) -> tuple[Folder, pa.Table, list[tuple[str, Stamp | None]]]:
    """List a folder page by page: return the folder, its files, and its subfolders with their state."""
    content, batches = hashlib.sha256(), []
    folders: dict[str, Stamp] = {}
    files, size_bytes, space_bytes, settled = 0, 0, 0, True
    for page in list_folder(listing, path):
        batches.append(arrow_table.from_files(page.files))
        folders |= page.folders
        space_bytes += page.space_bytes
        settled = settled and all(held >= min(wanted, live_nodes) for held, wanted in page.units)
        for file in page.files:
            content.update(_identity(file))
            files, size_bytes = files + 1, size_bytes + file.size_bytes
            settled = settled and _is_at_rest(file, live_nodes)
    table = pa.Table.from_batches(batches, arrow_table.SCHEMA)
    digest = content.hexdigest()
    folder = Folder(stamp, digest, files, size_bytes, space_bytes, table.num_rows, tuple(folders), settled)
    return folder, table, list(folders.items())


def _identity(file: StoredFile) -> bytes:
    """Bytes that are equal for equal files; the holders are sorted, because the NameNode names them in any order."""
    blocks = [(block.offset, block.length, sorted(block.hosts)) for block in file.blocks]
    return repr((file.path, file.size_bytes, blocks)).encode()


def _is_at_rest(file: StoredFile, live_nodes: int) -> bool:
    if file.is_open or file.is_missing:
        return False
    wanted = min(file.replication, live_nodes)
    return bool(file.erasure_policy) or all(len(block.hosts) == wanted for block in file.blocks)
