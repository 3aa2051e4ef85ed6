"""Packs a folder of images into RecordIO files in HDFS: few large files instead of many small ones."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import TypeVar

from hadoop.rest.masters import Addresses
from hadoop.rest.webhdfs_writing import WritableHdfs
from jobs.images import labels, recordio
from jobs.images.datasets import (
    UPLOADS_AT_ONCE,
    Broken,
    NoImage,
    Progress,
    check_image,
    files_below,
    hdfs_failures,
    hdfs_path,
)
from jobs.images.labels import Label
from jobs.images.packing_place import ALONE, place
from jobs.images.packing_place import NAME as NAME
from jobs.images.recordio import IDX, LEN, LST, REC

T = TypeVar("T")
R = TypeVar("R")

FILE_BYTES = 64_000_000
"""So that a pack is one block of HDFS: all of it lies on the same nodes."""
NO_LABEL = -1.0
_MOST_BYTES = recordio.MOST_BYTES - recordio.HEAD_BYTES


@dataclass(frozen=True)
class PackResult:
    """`packed` images in `files` packs and those `alone`, which are files beside them; path and reason of the rest.

    `broken` ones are among the packed.
    """

    packed: int
    files: int
    alone: tuple[Path, ...]
    skipped: tuple[tuple[Path, str], ...]
    broken: tuple[tuple[Path, str], ...]


def pack(
    directory: Path,
    hdfs_dir: str,
    namenodes: Addresses,
    user: str,
    file_bytes: int = FILE_BYTES,
    on_progress: Progress | None = None,
    keep_broken: bool = False,
    overwrite: bool = False,
    names: Collection[str] = (),
) -> PackResult:
    """Pack every image below `directory` into files of at most `file_bytes` in `hdfs_dir`, over WebHDFS.

    They keep their names, in the .lst, and get the class numbers of the folder's labels.tsv, if it has one (-1 where
    it lacks an image), else 0. Images are judged as by `jobs.images.datasets.load`; one in which the mark of a
    record stands becomes a file of its own. `hdfs_dir` appears when all is there. JobError: as with `load`, and an
    `hdfs_dir` that holds something, unless it is a pack and `overwrite` says to replace it.
    """
    files, table = files_below(directory), directory / labels.LABELS
    known = labels.read(table) if table.is_file() else None
    target = hdfs_path(hdfs_dir, namenodes, names)
    client = WritableHdfs(namenodes, user)
    with (
        hdfs_failures(f"store images in {target} for user {user}"),
        place(client, target, overwrite) as folder,
    ):
        packer = _Packer(client, folder, _Check(directory, keep_broken), known, file_bytes)
        return packer.run(files, on_progress or (lambda _, __: None))


@dataclass(frozen=True)
class _Checked:
    """A file that was read: its name below the folder, its bytes if they are an image, and what is wrong with it."""

    path: Path
    name: str
    content: bytes | None
    reason: str = ""


@dataclass(frozen=True)
class _Check:
    """Reads and judges one file of the folder `root`; called from many threads."""

    root: Path
    keep_broken: bool

    def __call__(self, path: Path) -> _Checked:
        name = path.relative_to(self.root).as_posix()
        try:
            content, reason = self._read(path, name)
        except OSError as error:
            return _Checked(path, name, None, f"cannot be read: {error.strerror or error}")
        except ValueError as error:
            return _Checked(path, name, None, str(error))
        return _Checked(path, name, content, reason)

    def _read(self, path: Path, name: str) -> tuple[bytes, str]:
        if {"\t", "\n", "\r"} & set(name) or name != os.fsencode(name).decode("utf-8", "replace"):
            raise NoImage("its name holds a tab or the end of a line, or is not UTF-8: rename the file")
        if path.stat().st_size > _MOST_BYTES:
            raise NoImage(f"a record holds no more than {_MOST_BYTES} bytes: load it as a file")
        content = path.read_bytes()
        try:
            check_image(path, content)
        except Broken as error:
            if not self.keep_broken:
                raise
            return content, str(error)
        return content, ""


@dataclass
class _Pack:
    """The lines that belong to one pack, while it is written."""

    size: int = 0
    idx: list[str] = field(default_factory=list)
    lst: list[str] = field(default_factory=list)
    lengths: list[str] = field(default_factory=list)

    def add(self, key: int, label: float, image: _Checked, content: bytes, record: bytes) -> None:
        self.idx.append(f"{key}\t{self.size}\n")
        self.lst.append(f"{key}\t{label:f}\t{image.name}\n")
        self.lengths.append(f"{key}\t{self.size + recordio.HEAD_BYTES}\t{len(content)}\n")
        self.size += len(record)


@dataclass
class _Packer:
    """Writes packs one after another into the folder `staging`; no more is in memory than some images and lines."""

    client: WritableHdfs
    staging: PurePosixPath
    check: Callable[[Path], _Checked]
    known: Mapping[str, Label] | None
    file_bytes: int
    packed: int = 0
    alone: dict[str, Path] = field(default_factory=dict)
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    broken: list[tuple[Path, str]] = field(default_factory=list)

    def run(self, files: list[Path], on_progress: Progress) -> PackResult:
        images, number = self._images(files, on_progress), 0
        first = next(images, None)
        while first is not None:
            first = self._write(self.staging / NAME.format(number), chain([first], images))
            number += 1
        if self.alone:
            self.client.write(str(self.staging / ALONE), "".join(f"{name}\n" for name in self.alone).encode())
        return PackResult(self.packed, number, tuple(self.alone.values()), tuple(self.skipped), tuple(self.broken))

    def _write(self, stem: PurePosixPath, images: Iterator[_Checked]) -> _Checked | None:
        """Write a pack; the image that did not fit into it any more, or None at the end."""
        pack, left = _Pack(), list[_Checked]()
        self.client.write(f"{stem}{REC}", self._records(pack, images, left))
        for kind, lines in ((IDX, pack.idx), (LST, pack.lst), (LEN, pack.lengths)):
            self.client.write(f"{stem}{kind}", "".join(lines).encode())
        return left[0] if left else None

    def _records(self, pack: _Pack, images: Iterator[_Checked], left: list[_Checked]) -> Iterator[bytes]:
        for image in images:
            content, label = image.content or b"", self._label(image.name)
            record = recordio.record(self.packed, label, content)
            if pack.size and pack.size + len(record) > self.file_bytes:
                left.append(image)
                return
            pack.add(self.packed, label, image, content, record)
            self.packed += 1
            yield record

    def _images(self, files: list[Path], on_progress: Progress) -> Iterator[_Checked]:
        """Those that go into packs; the others are noted, or stored as they are."""
        for done, found in enumerate(_in_order(UPLOADS_AT_ONCE, self.check, files), start=1):
            if found.content is None:
                self.skipped.append((found.path, found.reason))
            elif recordio.is_whole(found.content):
                if found.reason:
                    self.broken.append((found.path, found.reason))
                yield found
            else:
                self._store_alone(found, found.content)
            on_progress(done, len(files))

    def _store_alone(self, found: _Checked, content: bytes) -> None:
        if ":" in found.name or any(part.startswith(("_", ".")) for part in PurePosixPath(found.name).parts):
            reason = "has to be a file of its own, and Hadoop passes over such a name: rename the file"
            self.skipped.append((found.path, reason))
            return
        self.client.write(str(self.staging / found.name), content)
        self.alone[found.name] = found.path
        if found.reason:
            self.broken.append((found.path, found.reason))

    def _label(self, name: str) -> float:
        if self.known is None:
            return 0.0
        return float(self.known[name].number) if name in self.known else NO_LABEL


def _in_order(workers: int, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Results in the order of the items, with no more than twice as many begun as there are workers."""
    waiting, todo = deque[Future[R]](), iter(items)
    with ThreadPoolExecutor(workers) as pool:
        try:
            waiting.extend(pool.submit(work, item) for item in islice(todo, 2 * workers))
            while waiting:
                yield waiting.popleft().result()
                waiting.extend(pool.submit(work, item) for item in islice(todo, 1))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
