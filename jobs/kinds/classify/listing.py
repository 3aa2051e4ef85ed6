"""The images of a job: what is divided (blocks), and where the bytes of each image are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from threading import Lock

import numpy as np

from hadoop.client.blocks import StoredFile, list_files
from hadoop.client.filesystem import FileSystem
from hadoop.client.ranges import Ranges
from jobs.errors import JobError
from jobs.images import recordio
from jobs.images.recordio import IDX, LEN, LST, REC, BadPack, Index, Numbers, Records
from jobs.itemwork.messages import Item
from locality.types import Block, Part

READERS = 8
LOCATED_AT_ONCE = 1000
NEW = ".new"
PACKED_BLOCK = re.compile(rf"(?P<path>.+{re.escape(REC)})@(?P<byte>\d+)", re.DOTALL)


class ImageListing:
    """Files that are an image each, and packed ones; knows blocks by their names alone. Safe for several threads.

    A packed image that MXNet has split is put together and written below `apart` when it is asked for; without that
    folder, a pack that holds one is refused.
    """

    def __init__(self, filesystem: FileSystem, apart: str | None = None) -> None:
        self._filesystem = filesystem
        self._apart = apart
        self._lock = Lock()
        self._indexes: dict[str, Index] = {}

    def blocks(self, input_path: str) -> list[Block]:
        """All images of a folder or file: a file of its own is a block, and each block of HDFS in which packed ones
        begin. JobError when a pack cannot be read as it is: none of its images must be forgotten.
        """
        files = without_indexes(list_files(self._filesystem, input_path))
        with ThreadPoolExecutor(READERS, thread_name_prefix="index") as readers:
            indexes = dict(readers.map(self._check_index, (file for file in files if file.path.endswith(REC))))
        self._indexes.update(indexes)
        found: list[Block] = []
        for file in files:
            if file.path in indexes:
                found += _packed_blocks(file, indexes[file.path])
            else:
                found.append(_file_block(file))
        return found

    def of(self, part: Part) -> tuple[Item, ...]:
        """The images of a part of a block, in their order; JobError when the pack does not hold them any more."""
        name = PACKED_BLOCK.fullmatch(part.block.name)
        if name is None:
            return (Item(part.block.name, part.block.name, None, part.block.size_bytes),)
        path, index = name["path"], self._index(name["path"])
        first = index.first_at(int(name["byte"])) + part.first
        if first + part.items > len(index):
            raise JobError(f"{path} has changed since the job began", remedy="submit it again")
        return tuple(self._picture(path, index, number) for number in range(first, first + part.items))

    def _picture(self, path: str, index: Index, number: int) -> Item:
        name, place = f"{path}#{index.name(number)}", index.place(number)
        if place.is_split:
            return Item(name, self._join(path, int(index.offsets[number])), None, place.length)
        return Item(name, path, place.start, place.length)

    def _join(self, path: str, offset: int) -> str:
        """The file with the image of a split record, made at the first call; the same one for every attempt."""
        file = f"{self._apart}/{sha256(f'{path}@{offset}'.encode()).hexdigest()[:32]}"
        with self._lock:
            if not self._filesystem.exists(file):
                try:
                    with Ranges(self._filesystem, path) as ranges:
                        picture = recordio.picture(ranges.read, offset)
                except BadPack as error:
                    raise JobError(f"{path} {error}") from None
                self._filesystem.write(file + NEW, picture)
                self._filesystem.rename(file + NEW, file)
        return file

    def _index(self, path: str) -> Index:
        with self._lock:
            if path not in self._indexes:
                self._indexes[path] = self._read(path)
            return self._indexes[path]

    def _check_index(self, file: StoredFile) -> tuple[str, Index]:
        index = self._read(file.path)
        if index.places.split and self._apart is None:
            raise JobError(
                f"{file.path} holds {len(index.places.split)} images that are split, because the mark "
                "of a record stands in them",
                remedy="pack them with `nodewise images pack`",
            )
        return file.path, index

    def _read(self, path: str) -> Index:
        try:
            with Ranges(self._filesystem, path) as ranges:
                found = recordio.records(self._beside(path, IDX))
                lengths = self._beside(path, LEN)
                where = recordio.places(lengths, found) if lengths else _locate(path, ranges, found)
                return Index.of(found, where, self._beside(path, LST), ranges.size)
        except BadPack as error:
            raise JobError(f"{path} {error}") from None

    def _beside(self, path: str, kind: str) -> bytes:
        """The content of what belongs to a pack, nothing where it is not needed and not there."""
        name = path.removesuffix(REC) + kind
        if self._filesystem.exists(name):
            return self._filesystem.read(name)
        if kind == IDX:
            raise JobError(
                f"{path} has no {name.rpartition('/')[2]} beside it",
                remedy="MXNet's tools/rec2idx.py makes it, or pack the images with `nodewise images pack`",
            )
        return b""


def without_indexes(files: Iterable[StoredFile]) -> list[StoredFile]:
    """The files that hold images: what stands beside a pack and belongs to it does not; JobError when its pack is
    not there, because then images may be missing.
    """
    holding: list[StoredFile] = []
    beside: list[StoredFile] = []
    for file in files:
        (beside if file.path.endswith((IDX, LST, LEN)) else holding).append(file)
    packs = {file.path for file in holding if file.path.endswith(REC)}
    for file in beside:
        pack = file.path[: file.path.rindex(".")] + REC
        if pack not in packs:
            raise JobError(
                f"{file.path} has no {pack.rpartition('/')[2]} beside it",
                remedy="copy the pack whole, or rename the file if it is an image",
            )
    return holding


def _file_block(file: StoredFile) -> Block:
    if PACKED_BLOCK.fullmatch(file.path):
        raise JobError(f"{file.path} is named like a block of a pack", remedy="rename the file")
    return Block(file.path, 1, file.size_bytes, file.hosts())


def _packed_blocks(file: StoredFile, index: Index) -> Iterator[Block]:
    for stored in file.blocks:
        first, behind = index.first_at(stored.offset), index.first_at(stored.offset + stored.length)
        if behind > first:
            size = index.place(behind - 1).end - int(index.offsets[first])
            yield Block(f"{file.path}@{stored.offset}", behind - first, size, stored.local_hosts)


def _locate(path: str, ranges: Ranges, found: Records) -> recordio.Places:
    """Where the images of a pack made elsewhere are, one small read each."""
    offsets = found.offsets
    print(f"{path} has no {LEN} beside it: reading the heads of its {len(offsets)} records", flush=True)

    def some(first: int) -> Numbers:
        places = [recordio.locate(ranges.read, int(one)) for one in offsets[first : first + LOCATED_AT_ONCE]]
        return np.array(places, dtype=np.int64).reshape(-1, 4)

    with ThreadPoolExecutor(READERS, thread_name_prefix="head") as readers:
        parts = list(readers.map(some, range(0, max(1, len(offsets)), LOCATED_AT_ONCE)))
    return recordio.as_places(np.concatenate(parts))
