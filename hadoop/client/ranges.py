"""Reads ranges of bytes from a file of HDFS."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import jpype

from hadoop.client.filesystem import REMEDY, FileSystem
from hadoop.client.jvm import java_errors


class Ranges:
    """A file that is open for reading; any number of threads may read. Every method raises HadoopError."""

    def __init__(self, filesystem: FileSystem, name: str) -> None:
        self._doing = f"reading {name}"
        with java_errors(self._doing, REMEDY):
            path = filesystem.path(name)
            self.size = int(filesystem.java.getFileStatus(path).getLen())
            self._stream = filesystem.java.open(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with java_errors(self._doing, REMEDY):
            self._stream.close()

    def read(self, offset: int, length: int) -> bytes:
        """`length` bytes from `offset` on, fewer at the end of the file."""
        content = jpype.JArray(jpype.JByte)(max(0, min(length, self.size - offset)))
        with java_errors(self._doing, REMEDY):
            self._stream.readFully(offset, content)
        return bytes(content)
