"""The blocks of a path as they were last seen, asked again only where something changed.

A folder is listed again when a name in it came or went, or when something in it was on the move: a file still being
written, a block with more or fewer replicas than it should have. All of them are, when other nodes are alive than
before, when it is not known which are, when the totals of the path do not fit what was found, and after `max_age`
seconds: nothing else tells that the balancer moved a replica, or that one was put into a cache.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from hadoop.client import block_table
from hadoop.client.blocks import StoredFile, list_folder
from hadoop.client.listing import Listing, Stamp, Summary
from hadoop.errors import HadoopError

MAX_AGE_SECONDS = 600.0


class Folder(NamedTuple):
    """One listed folder: its state then, the digest, number and bytes of its files, their rows, and its folders.

    `space_bytes` counts every replica; `settled` tells that all of its files were at rest.
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

    `racks` names the live DataNodes, or the holders alone where the user may not know more. `listed_at` (Unix seconds)
    is the last time that every folder was listed, `listed_again` the number of folders that were listed to make this
    very snapshot.
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
        """Files, bytes, and bytes with every replica, that the totals have beyond the files that were found."""
        space_bytes = sum(folder.space_bytes for folder in self.folders.values())
        totals = self.summary
        return totals.files - self.file_count, totals.size_bytes - self.size_bytes, totals.space_bytes - space_bytes

    def files(self) -> Iterator[StoredFile]:
        """Every file, made one after the other."""
        return block_table.to_files(self.table)


def take(listing: Listing, path: str, before: Snapshot | None = None, max_age: float = MAX_AGE_SECONDS) -> Snapshot:
    """The blocks below a path now; what did not change since `before` is taken from there. HadoopError when it is gone.

    It costs a call for the totals, one for the nodes, one for each folder, and the listing of what changed.
    """
    top = listing.stamp(path)
    if top is None:
        raise HadoopError(f"{path} is not in HDFS: check the path, `hdfs:///` begins at the root")
    # Asked before the listing, so that what changes meanwhile is seen as a change by the next call.
    empty = Snapshot(path, time.time(), listing.summary(path), listing.racks(), {}, block_table.SCHEMA.empty_table())
    if before and before.racks == empty.racks != {} and 0 <= empty.listed_at - before.listed_at < max_age:
        found = _walked(listing, replace(empty, listed_at=before.listed_at), before, top)
        if _fits(found, before):
            return found
    found = _walked(listing, empty, empty, top)
    return found if found.racks else replace(found, racks=listing.holders())


def _fits(found: Snapshot, before: Snapshot) -> bool:
    """Whether the totals changed as the files did; what was appended to a file or copied changes no folder."""
    return found.hidden == before.hidden if found.listed_again else found.summary == before.summary


def _walked(listing: Listing, empty: Snapshot, known: Snapshot, top: Stamp) -> Snapshot:
    """`empty` filled with every folder: from `known` where that still holds, else listed."""
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
            folder, table, below = _listed(listing, path, stamp, len(empty.racks))
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


def _listed(
    listing: Listing, path: str, stamp: Stamp, live_nodes: int
) -> tuple[Folder, pa.Table, list[tuple[str, Stamp | None]]]:
    """A folder listed page by page; its files, and the folders in it with their state."""
    content, batches = hashlib.sha256(), []
    folders: dict[str, Stamp] = {}
    files, size_bytes, space_bytes, settled = 0, 0, 0, True
    for page in list_folder(listing, path):
        batches.append(block_table.from_files(page.files))
        folders |= page.folders
        space_bytes += page.space_bytes
        settled = settled and all(held >= min(wanted, live_nodes) for held, wanted in page.units)
        for file in page.files:
            content.update(_identity(file))
            files, size_bytes = files + 1, size_bytes + file.size_bytes
            settled = settled and _at_rest(file, live_nodes)
    table = pa.Table.from_batches(batches, block_table.SCHEMA)
    digest = content.hexdigest()
    folder = Folder(stamp, digest, files, size_bytes, space_bytes, table.num_rows, tuple(folders), settled)
    return folder, table, list(folders.items())


def _identity(file: StoredFile) -> bytes:
    """What makes two files the same for a snapshot; the NameNode names the holders in any order."""
    blocks = [(block.offset, block.length, sorted(block.hosts)) for block in file.blocks]
    return repr((file.path, file.size_bytes, blocks)).encode()


def _at_rest(file: StoredFile, live_nodes: int) -> bool:
    if file.is_open or file.is_missing:
        return False
    wanted = min(file.replication, live_nodes)
    return bool(file.erasure_policy) or all(len(block.hosts) == wanted for block in file.blocks)
