"""Bytes of HDFS without a JVM: many small files at once, and one file written whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from hdfs_native import Client, WriteOptions

READERS = 8


class Storage:
    """The default file system of HADOOP_CONF_DIR."""

    def __init__(self) -> None:
        self._client = Client()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="read")

    def read(self, paths: Sequence[str]) -> Iterator[bytes | Exception]:
        """The content of each file, or what went wrong with it, in the order asked for."""
        return self._readers.map(self._read_one, paths)

    def write(self, path: str, content: bytes) -> None:
        """Write a whole file, replacing an older one, into a folder that exists.

        A job that has ended takes its folder away; a worker that has not heard of it must not make it again.
        """
        with self._client.create(path, WriteOptions(overwrite=True, create_parent=False)) as stream:
            stream.write(content)

    def _read_one(self, path: str) -> bytes | Exception:
        try:
            with self._client.read(path) as stream:
                content: bytes = stream.read()
                return content
        except Exception as error:  # whatever the reader raises belongs to this one picture
            return error
