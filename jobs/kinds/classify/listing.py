"""The images of a job: what is divided (blocks), and where the bytes of each image are."""

from __future__ import annotations

import re
from collections import OrderedDict
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
MOST_INDEXED = 500_000
"""Images whose places in packs are kept, at about 100 bytes each; an index that was let go is read again."""
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
        self._indexes = IndexCache()

    def blocks(self, input_path: str) -> list[Block]:
        """All images of a folder or file: a file of its own is a block, and each block of HDFS in which packed ones
        begin. JobError when there are none, or a pack cannot be read as it is: none of its images must be forgotten.
        """
        replicas: dict[tuple[str, ...], tuple[str, ...]] = {}  # millions of files share some thousands
        files: list[Block | StoredFile] = []
        for file in without_indexes(list_files(self._filesystem, input_path)):
            files.append(file if file.path.endswith(REC) else _file_block(file, replicas))
        packs = (one for one in files if isinstance(one, StoredFile))
        with ThreadPoolExecutor(READERS, thread_name_prefix="index") as readers:
            packed = iter(list(readers.map(self._blocks_of_pack, packs)))
        blocks = [block for one in files for block in (next(packed) if isinstance(one, StoredFile) else (one,))]
        if not blocks:
            raise JobError(f"{input_path} holds no images", remedy="`nodewise images load` puts some there")
        return blocks

    def of(self, part: Part) -> tuple[Item, ...]:
        """The images of a part of a block, in their order; JobError when the pack does not hold them any more."""
        name = PACKED_BLOCK.fullmatch(part.block.name)
        if name is None:
            return (Item(part.block.name, part.block.name, None, part.block.size_bytes),)
        path, index = name["path"], self._index(name["path"])
        first = index.first_at(int(name["byte"])) + part.first
        if first + part.items > len(index):
            raise JobError(f"{path} has changed since the job began", remedy="submit it again")
        return tuple(self._image(path, index, number) for number in range(first, first + part.items))

    def _image(self, path: str, index: Index, number: int) -> Item:
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
                        image = recordio.read_image(ranges.read, offset)
                except BadPack as error:
                    raise JobError(f"{path} {error}") from None
                self._filesystem.write(file + NEW, image)
                self._filesystem.rename(file + NEW, file)
        return file

    def _index(self, path: str) -> Index:
        with self._lock:
            if (index := self._indexes.find(path)) is None:
                index = self._read(path)
                self._indexes.add(path, index)
            return index

    def _blocks_of_pack(self, file: StoredFile) -> list[Block]:
        index = self._read(file.path)
        if index.places.split and self._apart is None:
            raise JobError(
                f"{file.path} holds {len(index.places.split)} images that are split, because the mark "
                "of a record stands in them",
                remedy="pack them with `nodewise images pack`",
            )
        with self._lock:
            self._indexes.add(file.path, index)
        return list(_packed_blocks(file, index))

    def _read(self, path: str) -> Index:
        try:
            with Ranges(self._filesystem, path) as ranges:
                records = recordio.records(self._beside(path, IDX))
                lengths = self._beside(path, LEN)
                where = recordio.places(lengths, records) if lengths else _locate(path, ranges, records)
                return Index.of(records, where, self._beside(path, LST), ranges.size)
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


class IndexCache:
    """The indexes that were used last, of `MOST_INDEXED` images or of one pack; not thread-safe."""

    def __init__(self, most: int = MOST_INDEXED) -> None:
        self._most = most
        self._images = 0
        self._indexes: OrderedDict[str, Index] = OrderedDict()

    def find(self, path: str) -> Index | None:
        """The index of a pack, if it is still there."""
        if path in self._indexes:
            self._indexes.move_to_end(path)
        return self._indexes.get(path)

    def add(self, path: str, index: Index) -> None:
        """Keep an index, and forget the ones whose last use was the longest ago."""
        if path in self._indexes:
            self._images -= len(self._indexes.pop(path))
        self._indexes[path] = index
        self._images += len(index)
        while self._images > self._most and len(self._indexes) > 1:
            self._images -= len(self._indexes.popitem(last=False)[1])


def without_indexes(files: Iterable[StoredFile]) -> Iterator[StoredFile]:
    """Yield the files that hold images: what stands beside a pack and belongs to it does not. At the end JobError when
    its pack is not there, because then images may be missing.
    """
    packs: set[str] = set()
    beside: list[str] = []
    for file in files:
        if file.path.endswith((IDX, LST, LEN)):
            beside.append(file.path)
            continue
        if file.path.endswith(REC):
            packs.add(file.path)
        yield file
    for path in beside:
        pack = path[: path.rindex(".")] + REC
        if pack not in packs:
            raise JobError(
                f"{path} has no {pack.rpartition('/')[2]} beside it",
                remedy="copy the pack whole, or rename the file if it is an image",
            )


def _file_block(file: StoredFile, replicas: dict[tuple[str, ...], tuple[str, ...]]) -> Block:
    """A file that is an image; `replicas` has the ones seen so far, so that equal ones are kept once."""
    if PACKED_BLOCK.fullmatch(file.path):
        raise JobError(f"{file.path} is named like a block of a pack", remedy="rename the file")
    hosts = file.hosts()
    return Block(file.path, 1, file.size_bytes, replicas.setdefault(hosts, hosts))


def _packed_blocks(file: StoredFile, index: Index) -> Iterator[Block]:
    for stored in file.blocks:
        first, behind = index.first_at(stored.offset), index.first_at(stored.offset + stored.length)
        if behind > first:
            size = index.place(behind - 1).end - int(index.offsets[first])
            yield Block(f"{file.path}@{stored.offset}", behind - first, size, stored.local_hosts)


def _locate(path: str, ranges: Ranges, records: Records) -> recordio.Places:
    """Where the images of a pack made elsewhere are, one small read each."""
    offsets = records.offsets
    print(f"{path} has no {LEN} beside it: reading the heads of its {len(offsets)} records", flush=True)

    def some(first: int) -> Numbers:
        places = [recordio.locate(ranges.read, int(one)) for one in offsets[first : first + LOCATED_AT_ONCE]]
        return np.array(places, dtype=np.int64).reshape(-1, 4)

    with ThreadPoolExecutor(READERS, thread_name_prefix="head") as readers:
        parts = list(readers.map(some, range(0, max(1, len(offsets)), LOCATED_AT_ONCE)))
    return recordio.as_places(np.concatenate(parts))
