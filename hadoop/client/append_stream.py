"""Appends to files of HDFS; each has one writer at a time, and another program can take a file over from its writer."""

from __future__ import annotations

import time
from collections.abc import Iterator

import jpype

from hadoop.client.filesystem import REMEDY, FileSystem
from hadoop.client.jvm import java_errors
from hadoop.errors import HadoopError

CHUNK_BYTES = 1 << 20
BUFFER_BYTES = 4096
POLL_SECONDS = 0.1
ASK_AGAIN_SECONDS = 10.0


class AppendStream:
    """A new file in a folder that exists, for one thread at a time. Every method raises HadoopError."""

    def __init__(self, filesystem: FileSystem, name: str) -> None:
        self._name = name
        with java_errors(f"creating {name}", REMEDY):
            path, hdfs = filesystem.path(name), filesystem.java
            replication, block = hdfs.getDefaultReplication(path), hdfs.getDefaultBlockSize(path)
            self._stream = hdfs.createNonRecursive(path, False, BUFFER_BYTES, replication, block, None)

    def append(self, content: bytes) -> None:
        """Append bytes; on return every reader sees them, and every node that holds the file has them on its disk."""
        with java_errors(f"appending to {self._name}", REMEDY):
            self._stream.write(jpype.JArray(jpype.JByte)(content))
            self._stream.hsync()  # hflush leaves them in the memory of the nodes

    def close(self) -> None:
        """Close the file."""
        with java_errors(f"closing {self._name}", REMEDY):
            self._stream.close()

    def abandon(self) -> None:
        """Close the stream without complaint, though it may be broken; bytes that were not appended may be lost."""
        try:
            self._stream.close()
        except jpype.JException:
            return


def take_away(filesystem: FileSystem, name: str, patience: float = 60.0) -> None:
    """Close a file that another writer may have open: what it appended stays, and it cannot append any more.

    HadoopError when HDFS needs longer than `patience` seconds.
    """
    now = time.monotonic()
    deadline, ask_at = now + patience, now
    with java_errors(f"recovering {name}", REMEDY):
        path = filesystem.path(name)
        while not filesystem.java.isFileClosed(path):
            now = time.monotonic()
            if now > deadline:
                raise HadoopError(f"HDFS has not closed {name} within {patience:.0f} s", remedy=f"{REMEDY}")
            if now >= ask_at:
                filesystem.java.recoverLease(path)
                ask_at = now + ASK_AGAIN_SECONDS
            time.sleep(POLL_SECONDS)


def chunks(filesystem: FileSystem, name: str) -> Iterator[bytes]:
    """Yield the bytes of a file from its beginning, one piece at a time."""
    with java_errors(f"reading {name}", REMEDY):
        stream = filesystem.java.open(filesystem.path(name))
    try:
        buffer = jpype.JArray(jpype.JByte)(CHUNK_BYTES)
        while True:
            with java_errors(f"reading {name}", REMEDY):
                count = int(stream.read(buffer))
            if count < 0:
                return
            yield bytes(memoryview(buffer)[:count])
    finally:
        stream.close()


def children(filesystem: FileSystem, folder: str) -> list[str]:
    """The names of a folder's entries, sorted; none when there is no such folder."""
    if not filesystem.exists(folder):
        return []
    with java_errors(f"listing {folder}", REMEDY):
        return sorted(str(status.getPath().getName()) for status in filesystem.java.listStatus(filesystem.path(folder)))
