"""Bytes of HDFS without a JVM, from whichever replica gives them."""

from __future__ import annotations

import os
from typing import Any, Protocol

from hdfs_native import Client

SOCKET_MILLISECONDS = 5000
"""A DataNode that says nothing for so long is left, and the next replica asked."""
RUNTIME_THREADS = 2
"""Of the client, in each process; it would have one for each core of the node."""
MOST_OPEN = 16


class Storage(Protocol):
    """Where images are; one for each process, used by several threads."""

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        """So many bytes of a file, or all of them; FileNotFoundError, OSError, or what the client raises."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder; OSError, or what the client raises, if nobody can say."""


class Hdfs:
    """The default file system of HADOOP_CONF_DIR. Not to be made in a process that forks: the client has threads.

    A file that is read in pieces stays open, so that the NameNode is asked once where its blocks are.
    """

    def __init__(self) -> None:
        os.environ.setdefault("TOKIO_WORKER_THREADS", str(RUNTIME_THREADS))
        self._client = Client(config={"dfs.client.socket-timeout": str(SOCKET_MILLISECONDS)})
        self._open: dict[str, Any] = {}

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        """As Storage has it."""
        if length is None:
            whole: bytes = self._client.read(path).read()
            return whole
        reader = self._open.pop(path, None) or self._client.read(path)
        if offset + length > len(reader):  # the client would panic
            raise EOFError(f"{path} has {len(reader)} bytes, too few for {length} from {offset} on")
        content: bytes = reader.read_range(offset, length)
        self._open[path] = reader
        while len(self._open) > MOST_OPEN:
            self._open.pop(next(iter(self._open)), None)
        return content

    def exists(self, path: str) -> bool:
        """As Storage has it."""
        try:
            self._client.get_file_info(path)
        except FileNotFoundError:
            return False
        return True
