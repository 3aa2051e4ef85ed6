"""The files of HDFS below a path, and the nodes that hold their blocks, without a JVM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from hadoop.errors import HadoopError
from hadoop.rest.addresses import namenode_addresses
from hadoop.rest.webhdfs import WebHdfs
from jobs.images.storage import Hdfs, Storage
from learning.errors import LearningError


class File(NamedTuple):
    """A file of so many bytes, or a folder."""

    path: str
    length: int
    is_folder: bool
    replication: int


class Span(NamedTuple):
    """A block of a file: its first byte, the one behind it, and the nodes that hold all of it."""

    begin: int
    end: int
    hosts: tuple[str, ...]


class Files(Storage, Protocol):
    """Where data sets are."""

    def find(self, path: str) -> list[File]:
        """All below a folder, or the one file, by path; FileNotFoundError, OSError, or what the client raises."""

    def blocks(self, file: File) -> Sequence[Span]:
        """Where a file lies; called by several threads; HadoopError when nobody can say."""


class HdfsFiles(Hdfs):
    """Of the default file system of HADOOP_CONF_DIR."""

    def __init__(self) -> None:
        try:
            super().__init__()
        except Exception as error:  # whatever the client raises
            raise LearningError(
                f"there is no HDFS to read from ({error})", "let HADOOP_CONF_DIR name the folder of its site files"
            ) from None
        self._web: WebHdfs | None = None

    def find(self, path: str) -> list[File]:
        """As Files has it; names that begin with `_` or `.` are passed over, as Hadoop does."""
        status = self._client.get_file_info(path)
        if not status.isdir:
            return [File(path, status.length, False, status.replication or 1)]
        listed = [
            File(one.path, one.length, one.isdir, one.replication or 1)
            for one in self._client.list_status(path, recursive=True)
        ]
        return sorted(one for one in listed if not is_hidden(path, one.path))

    def blocks(self, file: File) -> Sequence[Span]:
        """As Files has it. A block on more nodes than it has replicas is erasure-coded, and whole on none of them."""
        self._web = self._web or _configured()
        return [_span(one, file.replication) for one in self._web.block_locations(file.path)]


def _configured() -> WebHdfs:
    """The HDFS of HADOOP_CONF_DIR."""
    folder, user = os.environ.get("HADOOP_CONF_DIR"), os.environ.get("HADOOP_USER_NAME", "")
    if not folder:
        raise HadoopError("HADOOP_CONF_DIR is not set", remedy="name the folder of Hadoop's site files")
    return WebHdfs(namenode_addresses(Path(folder)), user)


def plain_path(path: str) -> str:
    """A path of the default file system, without scheme and host; LearningError when it is something else.

    >>> plain_path("hdfs:///data/images/")
    '/data/images'
    """
    plain = "/" + path.removeprefix("hdfs://").partition("/")[2] if path.startswith("hdfs://") else path
    if not plain.startswith("/"):
        raise LearningError(f"{path} is not a path of HDFS", "begin with hdfs:/// or /")
    return plain.rstrip("/") or "/"


def is_hidden(folder: str, path: str) -> bool:
    """Whether Hadoop passes over this path below a folder.

    >>> is_hidden("/_all/data", "/_all/data/a/b.jpg"), is_hidden("/data", "/data/_packing/b.jpg")
    (False, True)
    """
    return any(name.startswith(("_", ".")) for name in below(folder, path).split("/"))


def below(folder: str, path: str) -> str:
    """The part of a path below a folder."""
    return path.removeprefix(folder.rstrip("/")).lstrip("/")


def _span(told: dict[str, object], replication: int) -> Span:
    hosts, offset, length = told["hosts"], told["offset"], told["length"]
    if not isinstance(hosts, list) or not isinstance(offset, int) or not isinstance(length, int):
        raise HadoopError(f"a NameNode tells of a block {told!r}", remedy="this needs Hadoop 3.3 or later")
    return Span(offset, offset + length, tuple(map(str, hosts)) if len(hosts) <= replication else ())
