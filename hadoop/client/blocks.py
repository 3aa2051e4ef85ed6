"""Files of a folder with the nodes that hold their blocks, listed in bulk, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from sys import intern
from typing import Any, NamedTuple

from hadoop.client.filesystem import FileSystem
from hadoop.client.listing import ErasurePolicy, Listing, Stamp
from hadoop.errors import HadoopError


class BlockState(StrEnum):
    """The state of a block."""

    LIVE = "live"  # each of its hosts holds it whole
    OPEN = "open"  # still being written; its length is what the NameNode knows so far
    ERASURE_CODED = "erasure_coded"  # its hosts hold a part each, so it is local nowhere
    MISSING = "missing"  # no live replica, or too few parts to put it together
    CORRUPT = "corrupt"  # every replica is damaged


NOT_READABLE = (BlockState.MISSING, BlockState.CORRUPT)


class StoredBlock(NamedTuple):
    """`length` bytes of a file from `offset`, with its live holders and the type of storage at each.

    The holders of an erasure-coded block are the nodes with its data units, in order. A block that fits into one unit
    is whole on that unit's node, and counts as a replicated one.
    """

    offset: int
    length: int
    hosts: tuple[str, ...]
    storage_types: tuple[str, ...] = ()
    cached_hosts: tuple[str, ...] = ()
    state: BlockState = BlockState.LIVE

    @property
    def local_hosts(self) -> tuple[str, ...]:
        """The nodes that can read all of it without the network."""
        return () if self.state is BlockState.ERASURE_CODED else self.hosts


class StoredFile(NamedTuple):
    """A file of HDFS: path without scheme and host, size, blocks; `erasure_policy` is empty where replicas are kept."""

    path: str
    size_bytes: int
    blocks: tuple[StoredBlock, ...]
    replication: int = 1
    is_open: bool = False
    erasure_policy: str = ""

    def hosts(self) -> tuple[str, ...]:
        """The nodes that hold any block whole, the one with the most bytes first, ties as the NameNode lists them."""
        held: dict[str, int] = {}
        for block in self.blocks:
            for host in block.local_hosts:
                held[host] = held.get(host, 0) + block.length
        return tuple(sorted(held, key=lambda host: -held[host]))

    @property
    def is_missing(self) -> bool:
        """Whether some of it cannot be read from any live node."""
        return any(block.state in NOT_READABLE for block in self.blocks)


@dataclass
class Page:
    """A part of a folder's listing: files, and the subfolders with their state at that moment.

    `space_bytes` counts every replica and parity unit of its files as the NameNode does; `units` has, for each
    erasure-coded block, how many units live nodes hold and how many there should be.
    """

    files: list[StoredFile] = field(default_factory=list)
    folders: dict[str, Stamp] = field(default_factory=dict)
    space_bytes: int = 0
    units: list[tuple[int, int]] = field(default_factory=list)


def list_files(filesystem: FileSystem, folder: str) -> Iterator[StoredFile]:
    """Every file below a folder, or the one file that the path names; HadoopError when there is no such path.

    Skips names that begin with `_` or `.`, as Hadoop does. Only one page is in memory at a time.
    """
    todo = [find_path(filesystem, folder)]
    listing = Listing(filesystem)
    while todo:
        for page in list_folder(listing, todo.pop()):
            yield from page.files
            todo.extend(page.folders)


def find_path(filesystem: FileSystem, folder: str) -> str:
    """The path of an existing file or folder without scheme and host; HadoopError when it does not exist."""
    if not filesystem.exists(folder):
        raise HadoopError(f"{folder} is not in HDFS", remedy="check the path, `hdfs:///` begins at the root")
    return str(filesystem.path(folder).toUri().getPath())


def list_folder(listing: Listing, folder: str) -> Iterator[Page]:
    """Yield the pages of one folder, without what lies below its subfolders; for a file, one page with itself."""
    for page in listing.pages(folder):
        found = Page()
        for entry in page.partialListing:
            name = entry.path.decode()
            path = f"{folder.rstrip('/')}/{name}" if name else folder
            if name.startswith(("_", ".")):
                continue
            if entry.fileType == entry.IS_FILE:
                _add(found, path, entry, listing)
            elif entry.fileType == entry.IS_DIR:
                found.folders[path] = Stamp(entry.fileId, entry.modification_time)
        yield found


def _add(page: Page, path: str, entry: Any, listing: Listing) -> None:
    located = entry.locations
    policy = listing.erasure_policy(located.ecPolicy) if located.HasField("ecPolicy") else None
    file = _file(path, entry, policy)
    page.files.append(file)
    page.space_bytes += _space_bytes(file, entry.blocksize, policy)
    if policy is not None:
        page.units += [_units(block, policy) for block in located.blocks]


def _space_bytes(file: StoredFile, block_bytes: int, policy: ErasurePolicy | None) -> int:
    """Bytes on all nodes; the NameNode counts a block that is still written as a full one of `block_bytes`."""
    being_written = sum(block.state is BlockState.OPEN for block in file.blocks) if file.is_open else 0
    closed = [block.length for block in file.blocks if block.state is not BlockState.OPEN]
    if policy is None:
        return file.replication * (sum(closed) + being_written * block_bytes)
    full = (policy.data_units + policy.parity_units) * block_bytes
    return sum(map(policy.space_bytes, closed)) + being_written * full


def _units(block: Any, policy: ErasurePolicy) -> tuple[int, int]:
    """How many units of a group live nodes hold, and how many there should be: those with data, and all parity."""
    filled = policy.filled_units(block.b.numBytes)
    held = {
        unit
        for unit, _ in zip(block.blockIndices, block.locs, strict=False)
        if unit < filled or unit >= policy.data_units
    }
    return len(held), filled + policy.parity_units


def _file(path: str, entry: Any, policy: ErasurePolicy | None) -> StoredFile:
    located = entry.locations
    blocks = [_block(block, policy) for block in located.blocks]
    if located.underConstruction and located.HasField("lastBlock") and not located.isLastBlockComplete:
        # A block that is being written mostly has no length yet, and then is not among the blocks.
        blocks = [block for block in blocks if block.offset != located.lastBlock.offset]
        blocks.append(_block(located.lastBlock, policy, is_open=True))
    return StoredFile(
        path,
        entry.length,
        tuple(blocks),
        entry.block_replication,
        located.underConstruction,
        policy.name if policy else "",
    )


def _block(block: Any, policy: ErasurePolicy | None, is_open: bool = False) -> StoredBlock:
    length = block.b.numBytes
    if policy is not None:
        return _group_block(block, length, policy, is_open)
    holders = [] if block.corrupt else [intern(at.id.hostName) for at in block.locs]
    state = BlockState.OPEN if is_open else BlockState.LIVE
    if block.corrupt:
        state = BlockState.CORRUPT
    elif not holders:
        state = BlockState.MISSING
    return _stored_block(block, length, list(enumerate(holders)), state)


def _group_block(block: Any, length: int, policy: ErasurePolicy, is_open: bool) -> StoredBlock:
    """The record of a group of data and parity units; `blockIndices` says which unit each location holds."""
    if is_open:
        return _stored_block(block, length, [], BlockState.OPEN)
    units = dict(zip(block.blockIndices, range(len(block.locs)), strict=False))
    filled = policy.filled_units(length)
    data = [(at, intern(block.locs[at].id.hostName)) for unit, at in sorted(units.items()) if unit < filled]
    if len(units) < filled:
        return _stored_block(block, length, [], BlockState.CORRUPT if block.corrupt else BlockState.MISSING)
    whole = filled == len(data) == 1
    return _stored_block(block, length, data, BlockState.LIVE if whole else BlockState.ERASURE_CODED)


def _stored_block(block: Any, length: int, holders: list[tuple[int, str]], state: BlockState) -> StoredBlock:
    """The record of a block whose `holders` are pairs of their place in `locs` and their name."""
    types, cached = tuple(block.storageTypes), tuple(block.isCached)
    names = _STORAGE_NAMES or _learn_storage_names(block)
    return StoredBlock(
        block.offset,
        length,
        tuple([host for _, host in holders]),
        tuple([names[types[at]] for at, _ in holders if at < len(types)]),
        tuple([host for at, host in holders if cached[at]]) if True in cached else (),
        state,
    )


_STORAGE_NAMES: dict[int, str] = {}


def _learn_storage_names(block: Any) -> dict[int, str]:
    values = block.DESCRIPTOR.fields_by_name["storageTypes"].enum_type.values
    _STORAGE_NAMES.update({value.number: value.name for value in values})
    return _STORAGE_NAMES
