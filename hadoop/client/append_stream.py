"""Appends to files of HDFS; each has one writer at a time, and another program can take a file over from its writer."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import Any, Self

import jpype

from hadoop.client.datanodes import DataNode
from hadoop.client.filesystem import REMEDY, FileSystem, permission
from hadoop.client.jvm import java, java_errors
from hadoop.errors import HadoopError

CHUNK_BYTES = 1 << 20
BUFFER_BYTES = 4096
POLL_SECONDS = 0.1
ASK_AGAIN_SECONDS = 10.0


class AppendStream:
    """A file in a folder that exists, for one thread at a time. Every method raises HadoopError."""

    def __init__(self, name: str, stream: Any) -> None:
        """`stream` is Java's, which writes to it."""
        self._name = name
        self._stream = stream

    @classmethod
    def create(cls, filesystem: FileSystem, name: str, nodes: Sequence[DataNode] = ()) -> Self:
        """A new file with the replication that files have, or on these nodes, as far as the NameNode follows that."""
        with java_errors(f"creating {name}", REMEDY):
            builder = filesystem.java.createFile(filesystem.path(name)).overwrite(False).bufferSize(BUFFER_BYTES)
            if nodes:
                favored = jpype.JArray(java("java.net.InetSocketAddress"))([_socket_address(node) for node in nodes])
                builder = builder.replication(jpype.JShort(len(nodes))).favoredNodes(favored)
            return cls(name, builder.build())

    @classmethod
    def anew(cls, filesystem: FileSystem, name: str, mode: int, replication: int, block_bytes: int) -> Self:
        """A file with this mode, in place of an older one: HDFS sets a block aside for each file that is written."""
        with java_errors(f"creating {name}", REMEDY):
            overwrite = jpype.JClass("java.util.EnumSet").of(*map(_create_flag, ("CREATE", "OVERWRITE")))
            stream = filesystem.java.createNonRecursive(
                filesystem.path(name), permission(mode), overwrite, BUFFER_BYTES, replication, block_bytes, None
            )
        return cls(name, stream)

    @classmethod
    def go_on(cls, filesystem: FileSystem, name: str) -> tuple[Self, int]:
        """Go on at the end of a file, which is taken from its writer; with it, how many bytes the file has."""
        take_away(filesystem, name)
        with java_errors(f"appending to {name}", REMEDY):
            path = filesystem.path(name)
            length = int(filesystem.java.getFileStatus(path).getLen())
            return cls(name, filesystem.java.append(path)), length

    def append(self, content: bytes, on_disk: bool = True) -> None:
        """Append bytes; on return every reader sees them, and every node that holds the file has them.

        They are on the nodes' disks then, or with `on_disk` False only in their memory.
        """
        with java_errors(f"appending to {self._name}", REMEDY):
            self._stream.write(jpype.JArray(jpype.JByte)(content))
            if on_disk:
                self._stream.hsync()
            else:
                self._stream.hflush()

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


def make_up_replicas(filesystem: FileSystem, name: str) -> None:
    """Let a closed file have as many replicas as files have; HDFS sees to that in its own time."""
    with java_errors(f"asking for replicas of {name}", REMEDY):
        path = filesystem.path(name)
        filesystem.java.setReplication(path, filesystem.java.getDefaultReplication(path))


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


def chunks(filesystem: FileSystem, name: str) -> Generator[bytes, None, None]:
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


def _socket_address(node: DataNode) -> Any:
    """By its number alone: Java would look for a name, which the NameNode may not know."""
    addresses = java("java.net.InetAddress")
    address = addresses.getByAddress(node.ip, addresses.getByName(node.ip).getAddress())
    return java("java.net.InetSocketAddress")(address, node.port)


def _create_flag(name: str) -> Any:
    return jpype.JClass("org.apache.hadoop.fs.CreateFlag").valueOf(name)
