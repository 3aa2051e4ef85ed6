"""The blocks of a path as WebHDFS tells them, listed in the background and kept for a while.

WebHDFS tells the blocks of one file at a time, so this is for paths of some thousands of files; beyond, the commands
list in bulk, with the help of Java.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSoon
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hadoop.client import arrow_table
from hadoop.client.blocks import BlockState, StoredBlock, StoredFile
from hadoop.client.listing import Stamp, Summary
from hadoop.client.snapshots import Folder, Snapshot
from hadoop.errors import HadoopError
from hadoop.rest.webhdfs import CONNECTIONS
from jobs.dashboard.briefly import bare
from jobs.dashboard.sources.eyes import Hdfs

MOST_FILES = 20_000
MOST_PATHS = 16
KEPT_SECONDS = 30.0
LISTING_SECONDS = 120.0
"""What takes longer is given up."""
AT_ONCE = 2
"""Paths that are listed at one time."""


@dataclass
class Progress:
    """How far a listing is: files that were found, and those of them whose blocks are known."""

    files: int = 0
    listed: int = 0


@dataclass
class _Entry:
    answer: Future[Snapshot]
    progress: Progress = field(default_factory=Progress)
    ended_at: float | None = None


def stored_file(path: str, status: Mapping[str, Any], locations: Sequence[Mapping[str, Any]]) -> StoredFile:
    """A file from its FileStatus and the BlockLocation of each of its blocks.

    WebHDFS does not tell which unit of an erasure-coded block a node holds, so all such blocks count as local nowhere.
    """
    coded = bool(status.get("ecPolicy") or status.get("ecBit"))
    policy = str(status.get("ecPolicy") or "unknown") if coded else ""
    blocks = tuple(_block(row, coded) for row in locations)
    return StoredFile(path, int(status["length"]), blocks, int(status.get("replication") or 1), False, policy)


def _block(row: Mapping[str, Any], coded: bool) -> StoredBlock:
    hosts = () if row.get("corrupt") else tuple(map(str, row.get("hosts") or ()))
    state = BlockState.ERASURE_CODED if coded else BlockState.LIVE
    if row.get("corrupt"):
        state = BlockState.CORRUPT
    elif not hosts:
        state = BlockState.MISSING
    types = tuple(map(str, row.get("storageTypes") or ()))
    cached = tuple(map(str, row.get("cachedHosts") or ()))
    return StoredBlock(int(row["offset"]), int(row["length"]), hosts, types, cached, state)


def take(hdfs: Hdfs, path: str, progress: Progress, clock: Callable[[], float] = time.monotonic) -> Snapshot:
    """Every file below a path, or the one file, with its blocks; HadoopError when there are too many.

    Names that begin with `_` or `.` are passed over, as by the jobs.
    """
    deadline = clock() + LISTING_SECONDS

    def in_time() -> None:
        if clock() > deadline:
            raise HadoopError(f"{path} takes longer than {LISTING_SECONDS:.0f} s to list", remedy=f"{_instead(path)}")

    racks = hdfs.racks()
    found = _find_files(hdfs, path, progress, in_time)
    files: list[StoredFile] = []
    pool = ThreadPoolExecutor(CONNECTIONS, "board-blocks")
    try:
        for file in pool.map(lambda one: _with_blocks(hdfs, *one), found.items()):
            files.append(file)
            progress.listed += 1
            in_time()
    finally:
        pool.shutdown(cancel_futures=True)
    return as_snapshot(path, files, racks)


def as_snapshot(path: str, files: Sequence[StoredFile], racks: Mapping[str, str]) -> Snapshot:
    """Files in the form in which the commands have them, as if they all lay in one folder."""
    table = pa.Table.from_batches([arrow_table.from_files(files)], arrow_table.SCHEMA)
    size_bytes = sum(file.size_bytes for file in files)
    folder = Folder(Stamp(0, 0), "", len(files), size_bytes, 0, table.num_rows, (), True)
    summary = Summary(len(files), 1, size_bytes, 0)
    return Snapshot(path, time.time(), summary, dict(racks), {path: folder}, table)


def _find_files(hdfs: Hdfs, path: str, progress: Progress, in_time: Callable[[], None]) -> dict[str, dict[str, Any]]:
    """The FileStatus of each file below a path; `in_time` raises what ends the search."""
    todo, files = [path], dict[str, dict[str, Any]]()
    while todo:
        in_time()
        folder = todo.pop()
        for status in hdfs.list_folder(folder):
            name = str(status["pathSuffix"])
            if name.startswith(("_", ".")):
                continue
            where = f"{folder.rstrip('/')}/{name}" if name else folder
            if status["type"] == "DIRECTORY":
                todo.append(where)
            elif status["type"] == "FILE":
                files[where] = status
        progress.files = len(files)
        if len(files) > MOST_FILES:
            raise HadoopError(
                f"{path} holds more than {MOST_FILES:,} files, too many for this page", remedy=f"{_instead(path)}"
            )
    return files


def _with_blocks(hdfs: Hdfs, path: str, status: Mapping[str, Any]) -> StoredFile:
    return stored_file(path, status, hdfs.block_locations(path) if status["length"] else ())


def _instead(path: str) -> str:
    return f"`nodewise locality plan hdfs://{path} --capability NAME` shows the same"


class Listings:
    """Listings under way, and those that ended a short while ago."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[tuple[Hashable, str], _Entry] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE, "board-listing")

    def get(self, hdfs: Hdfs, whose: Hashable, path: str, seconds: float) -> Snapshot | Progress:
        """The blocks of a path, or how far their listing is after so many seconds; HadoopError.

        `whose` tells listings of one path apart: those of another HDFS, and those that others see.
        """
        entry = self._entry(hdfs, (whose, path))
        try:
            failure = entry.answer.exception(seconds)
        except TooSoon:
            return entry.progress
        if failure is not None:
            raise bare(failure)
        return entry.answer.result()

    def _entry(self, hdfs: Hdfs, key: tuple[Hashable, str]) -> _Entry:
        with self._lock:
            now = self._clock()
            for old, entry in list(self._entries.items()):
                if entry.ended_at is not None and now - entry.ended_at > KEPT_SECONDS:
                    del self._entries[old]
            if key in self._entries:
                return self._entries[key]
            if len(self._entries) >= MOST_PATHS:
                raise HadoopError(
                    f"{MOST_PATHS} paths were asked for just now", remedy=f"ask again in {KEPT_SECONDS:.0f} s"
                )
            progress = Progress()
            made = _Entry(self._pool.submit(take, hdfs, key[1], progress), progress)
            self._entries[key] = made
        made.answer.add_done_callback(lambda _: setattr(made, "ended_at", self._clock()))
        return made
