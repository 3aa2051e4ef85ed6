"""Bytes for data sets: many pieces at once, tried again for a while, and a LearningError in place of any failure."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from jobs.itemwork.messages import Item
from jobs.training_data.files import File, Files
from jobs.worker.reading import GIVE_UP_SECONDS, Reader, Stalled, TooLarge, Unreadable
from learning.errors import LearningError

T = TypeVar("T")

PAUSE_SECONDS = 1.0
WAIT_SECONDS = 10.0
PIECE_BYTES = 64 << 20
"""Of one read: more than an image may have is not read at once."""
REMEDY = "look whether HDFS is up and holds it; the run goes on from its last checkpoint when it is submitted again"


class Contents:
    """Of the files of a data set."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self._reader = Reader(files)

    def find(self, path: str) -> list[File]:
        """All below a path, by path; LearningError when there is nothing, or HDFS stays away."""
        try:
            return patiently(lambda: self.files.find(path), path)
        except FileNotFoundError:
            raise LearningError(
                f"{path} is not in HDFS", "check the path; `nodewise images load` or `pack` puts images there"
            ) from None

    def read(self, pieces: Sequence[tuple[str, int | None, int]]) -> list[bytes]:
        """For each (path, first byte, length) its bytes, or with None those of the whole file.

        LearningError when HDFS does not give them, MemoryError when they do not fit into memory.
        """
        items = [Item(str(at), path, offset, length) for at, (path, offset, length) in enumerate(pieces)]
        found: list[bytes] = [b""] * len(items)
        try:
            for one in self._reader.fetch(items).items(WAIT_SECONDS):
                if one is not None:
                    item, content = one
                    if isinstance(content, TooLarge):
                        raise MemoryError(f"{item.path} {content}")
                    if isinstance(content, Unreadable):
                        raise LearningError(f"{item.path} {content}", REMEDY)
                    found[int(item.name)] = content
        except Stalled as error:
            raise LearningError(str(error), REMEDY) from None
        return found

    def read_whole(self, path: str) -> bytes:
        """All of a file."""
        (content,) = self.read([(path, None, 0)])
        return content


class StoredFile(io.RawIOBase):
    """A file that can be read from any place, for libraries that want one."""

    def __init__(self, contents: Contents, file: File) -> None:
        self._contents = contents
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.length}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, or all that are left; fewer at the end."""
        left = max(0, self._file.length - self._at)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        end = self._at + length
        begins = range(self._at, end, PIECE_BYTES)
        pieces = [(self._file.path, begin, min(PIECE_BYTES, end - begin)) for begin in begins]
        self._at = end
        return b"".join(self._contents.read(pieces))


def patiently(call: Callable[[], T], what: str) -> T:
    """Try a call again as long as workers try to read an image; FileNotFoundError, or LearningError at the end."""
    until = time.monotonic() + GIVE_UP_SECONDS
    while True:
        try:
            return call()
        except FileNotFoundError:
            raise
        except Exception as error:  # whatever the client raises
            reason = str(error).split("\n", 1)[0] or type(error).__name__
            if time.monotonic() > until:
                raise LearningError(f"{what} cannot be listed: {reason}", REMEDY) from error
            print(f"{what}: {reason}; trying again", file=sys.stderr, flush=True)
            time.sleep(PAUSE_SECONDS)
