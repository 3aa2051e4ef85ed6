"""Files of a folder with the nodes that hold their blocks, listed in bulk, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hadoop.errors import HadoopError
from hadoop.filesystem import REMEDY, FileSystem
from hadoop.jvm import java_errors


@dataclass(frozen=True)
class StoredFile:
    """A file of HDFS: path without scheme and host, size, and per block (offset, length, host names)."""

    path: str
    size_bytes: int
    blocks: tuple[tuple[int, int, tuple[str, ...]], ...]

    def hosts(self) -> tuple[str, ...]:
        """The nodes that hold any of it, the one with the most bytes first, ties as the NameNode lists them."""
        held: dict[str, int] = {}
        for _, length, hosts in self.blocks:
            for host in hosts:
                held[host] = held.get(host, 0) + length
        return tuple(sorted(held, key=lambda host: -held[host]))


def list_files(filesystem: FileSystem, folder: str) -> Iterator[StoredFile]:
    """Every file below a folder, or the one file that the path names; HadoopError when there is no such path.

    Names that begin with `_` or `.` are passed over, as everywhere in Hadoop.
    """
    path = filesystem.path(folder)
    if not filesystem.exists(folder):
        raise HadoopError(f"{folder} is not in HDFS: check the path, `hdfs:///` begins at the root")
    with java_errors(f"listing {folder}", REMEDY):
        top = str(path.toUri().getPath())
        # One call of the NameNode brings a page of files with their locations (dfs.ls.limit).
        pages = filesystem.java.listFiles(path, True)
        while pages.hasNext():
            status = pages.next()
            stored = str(status.getPath().toUri().getPath())
            if not _hidden(stored.removeprefix(top)):
                yield StoredFile(stored, int(status.getLen()), _blocks(status))


def _hidden(below: str) -> bool:
    return any(part.startswith(("_", ".")) for part in below.split("/") if part)


def _blocks(status: object) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    locations = status.getBlockLocations()  # type: ignore[attr-defined]
    return tuple(
        (int(at.getOffset()), int(at.getLength()), tuple(str(host) for host in at.getHosts())) for at in locations
    )
