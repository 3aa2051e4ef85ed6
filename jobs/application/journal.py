"""What must survive the application master: records in HDFS, by one attempt at a time.

An attempt has a folder of its own, and writes one segment in it, or another one when HDFS refuses the first or a
DataNode is silent. A later attempt renames the folder, so that no segment can be added, and takes the segments away
from their writer. What was acknowledged by then is kept, and nothing is acknowledged afterwards.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import msgspec

from hadoop.client.append_stream import children, chunks, take_away
from hadoop.client.filesystem import FileSystem
from hadoop.client.segments import FolderGoneError, Segments
from hadoop.errors import HadoopError
from jobs.application.frames import contents, frame

_FOLDER = re.compile(r"attempt-(\d+)(\.ended)?")


@dataclass(frozen=True, slots=True)
class Record:
    """Something that happened: `body` is of what JSON knows, `payload` any bytes."""

    kind: str
    body: Mapping[str, Any] = field(default_factory=dict)
    payload: bytes = b""


class Journal:
    """Records of one attempt, appended by any thread; every method raises HadoopError. `open` makes one."""

    def __init__(self, filesystem: FileSystem, folder: str, attempt: int) -> None:
        """Not for use before the earlier attempts are fenced: see `open`."""
        self._filesystem = filesystem
        self._root = folder
        self._attempt = attempt
        self._folder = f"{folder}/attempt-{attempt}"
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._last = self._durable = 0
        self._writing = False
        self._broken: HadoopError | None = None
        self._segments: Segments | None = None

    @classmethod
    def open(cls, filesystem: FileSystem, folder: str, attempt: int) -> Self:
        """Take over from the earlier attempts, whose records then change no more; refused if there is a later one."""
        journal = cls(filesystem, folder, attempt)
        filesystem.make_folder(journal._folder)
        for number, name in _attempts(filesystem, folder):
            if number > attempt or (number == attempt and name.endswith(".ended")):
                raise journal._taken_over_error()
            if number < attempt:
                _fence(filesystem, folder, name)
        journal._segments = Segments(filesystem, journal._folder)
        return journal

    def earlier(self) -> Iterator[Record]:
        """What earlier attempts have recorded, in their order, without the payloads: they would fill the memory."""
        records = _records(self._filesystem, self._root, before=self._attempt)
        return (replace(record, payload=b"") for record in records)

    def append(self, record: Record) -> None:
        """Durable on return; threads that wait at the same time share one flush. After a failure every call fails."""
        with self._changed:
            if self._broken:
                raise self._broken
            self._last = mine = self._last + 1
            content = msgspec.msgpack.encode((mine, record.kind, record.body, record.payload))
            self._waiting.append(frame(content))
            while self._writing and self._durable < mine:
                self._changed.wait()
            if self._durable < mine:
                self._flush()
            if self._durable < mine:
                raise self._broken or HadoopError("the journal is closed")

    def close(self) -> None:
        """End the segments of this attempt; nothing can be appended afterwards."""
        with self._changed:
            while self._writing:
                self._changed.wait()
            segments, self._segments = self._segments, None
            self._broken = self._broken or HadoopError("the journal is closed")
        if segments:
            segments.close()

    def _flush(self) -> None:
        """Write what waits, on behalf of all who do; called with the lock held, which is let go meanwhile."""
        if self._broken:
            return
        batch, last = b"".join(self._waiting), self._last
        self._waiting.clear()
        self._writing = True
        self._changed.release()
        broken: HadoopError | None = HadoopError("the journal could not be written")
        try:
            self._write(batch)
            broken = None
        except HadoopError as error:
            broken = error
        finally:
            self._changed.acquire()
            self._writing = False
            if broken:
                self._broken = broken
            else:
                self._durable = last
            self._changed.notify_all()

    def _write(self, batch: bytes) -> None:
        if self._segments is None:
            raise HadoopError("the journal is closed")
        try:
            self._segments.append(batch)
        except FolderGoneError:
            raise self._taken_over_error() from None

    def _taken_over_error(self) -> HadoopError:
        return HadoopError(
            f"attempt {self._attempt} at this job may record nothing more: a later attempt has taken over {self._root}"
        )


def read(filesystem: FileSystem, folder: str) -> Iterator[Record]:
    """Every record of every attempt once, in order; of an attempt that goes on, what it has recorded so far."""
    return _records(filesystem, folder, before=None)


def last_attempt(filesystem: FileSystem, folder: str) -> int:
    """The number of the latest attempt that has a journal, 0 when none has."""
    return max((number for number, _ in _attempts(filesystem, folder)), default=0)


def _fence(filesystem: FileSystem, folder: str, name: str) -> None:
    """End an earlier attempt: it finds no folder for a new segment, and those that it has are closed."""
    ended = f"{folder}/{name.removesuffix('.ended')}.ended"
    if not name.endswith(".ended"):
        filesystem.rename(f"{folder}/{name}", ended)
    _close_all(filesystem, ended)


def _close_all(filesystem: FileSystem, folder: str) -> None:
    for segment in children(filesystem, folder):
        take_away(filesystem, f"{folder}/{segment}")


def _attempts(filesystem: FileSystem, folder: str) -> list[tuple[int, str]]:
    found = ((_FOLDER.fullmatch(name), name) for name in children(filesystem, folder))
    return sorted((int(match[1]), name) for match, name in found if match)


def _records(filesystem: FileSystem, folder: str, before: int | None) -> Iterator[Record]:
    for number, name in _attempts(filesystem, folder):
        if before is None or number < before:
            yield from _once(filesystem, f"{folder}/{name}")


def _once(filesystem: FileSystem, folder: str) -> Iterator[Record]:
    """Records of one attempt: what was written again in a later segment is passed over."""
    last = 0
    for segment in children(filesystem, folder):
        for content in contents(chunks(filesystem, f"{folder}/{segment}")):
            number, kind, body, payload = msgspec.msgpack.decode(content)
            if number > last:
                last = number
                yield Record(kind, body, payload)
