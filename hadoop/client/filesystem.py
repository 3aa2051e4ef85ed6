"""Reads and writes whole files of HDFS through Hadoop's own client."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jpype

from hadoop.client.jvm import configuration, has_two_namenodes, java, java_errors
from hadoop.errors import HadoopError

REMEDY = "is HDFS up? `nodewise cluster status` tells"
PIECE_BYTES = 1 << 20
"""Of a content that is in Java's memory at once: a large file would fill its heap."""
SPREAD_BYTES = 8 << 20
"""Block size of files that many nodes fetch together: with many blocks, many nodes hold some, and all send them."""


@dataclass(frozen=True)
class Entry:
    """A file or folder in a folder: its name, its size in bytes (0 for a folder), when it changed (Unix seconds)."""

    name: str
    size_bytes: int
    modified_at: float


@dataclass(frozen=True)
class Amount:
    """How much a file or folder holds, with all below it."""

    files: int
    size_bytes: int


class FileSystem:
    """The default file system of the configuration. Every method raises HadoopError."""

    def __init__(self, patience_seconds: int = 0) -> None:
        """Calls wait so long, about, for a NameNode that is away, starts or is in safe mode; 0 fails soon.

        Of two NameNodes each is asked in turn, for as long as Hadoop's settings say, which is some minutes.
        The first FileSystem of a process decides, as Hadoop keeps it for all later ones.
        """
        conf = configuration()
        # Where there are two, this would hold up the question to the other one.
        waits_for_one = patience_seconds > 0 and not has_two_namenodes(conf)
        conf.setBoolean("dfs.client.retry.policy.enabled", waits_for_one)
        if waits_for_one:
            conf.set("dfs.client.retry.policy.spec", f"1000,{patience_seconds}")  # milliseconds between tries, tries
        with java_errors("connecting to HDFS", REMEDY):
            self.java = java("org.apache.hadoop.fs.FileSystem").get(conf)

    def path(self, name: str) -> Any:
        """A Java Path; `hdfs:///a`, `hdfs://host:port/a` and `/a` mean the same place here."""
        with java_errors(f"reading the path {name!r}", "use hdfs:///folder/name or /folder/name"):
            path = java("org.apache.hadoop.fs.Path")(name)
            return self.java.makeQualified(path)

    def exists(self, name: str) -> bool:
        """Whether a file or folder has this name."""
        with java_errors(f"looking for {name}", REMEDY):
            return bool(self.java.exists(self.path(name)))

    def home(self) -> str:
        """The user's own folder, as a path."""
        with java_errors("asking for the user's folder", REMEDY):
            return str(self.java.getHomeDirectory())

    def make_folder(self, name: str, mode: int | None = None) -> None:
        """Make a folder and its parents; `mode`, if given, applies to the folder itself, even if it exists already."""
        with java_errors(f"making the folder {name}", REMEDY):
            self.java.mkdirs(self.path(name))
            if mode is not None:
                self.java.setPermission(self.path(name), permission(mode))

    def write(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Write a whole file, replacing an older one. The file has its mode before it has any content."""
        with java_errors(f"writing {name}", REMEDY):
            create = java("org.apache.hadoop.fs.FileSystem").create
            stream = create(self.java, self.path(name), permission(mode))
            try:
                _write(stream, content)
            finally:
                stream.close()

    def exchange(self, name: str, content: bytes) -> None:
        """Write a whole file in one step: whoever reads it meanwhile has an older one, or all of this one."""
        draft = draft_of(name)
        try:
            self.write(draft, content)
            self.rename(draft, name, overwrite=True)
        except BaseException:
            with suppress(HadoopError):
                self.delete(draft)
            raise

    @contextmanager
    def open_writer(
        self, name: str, mode: int = 0o644, block_bytes: int | None = None
    ) -> Iterator[Callable[[bytes], None]]:
        """Create a file and yield a function that appends a piece to it; the umask does not narrow the mode.

        Its blocks have the size that files have, or `block_bytes`, a multiple of 512. HadoopError when the file
        exists. What was written before the block fails stays.
        """
        with java_errors(f"writing {name}", REMEDY):
            builder = self.java.createFile(self.path(name)).overwrite(False).recursive()
            stream = (builder.blockSize(block_bytes) if block_bytes else builder).build()
            try:
                yield lambda piece: _write(stream, piece)
            finally:
                stream.close()
            self.java.setPermission(self.path(name), permission(mode))

    def mode(self, name: str) -> int:
        """The permission bits of a file or folder."""
        with java_errors(f"looking at {name}", REMEDY):
            return int(self.java.getFileStatus(self.path(name)).getPermission().toShort())

    def identity(self, name: str) -> int | None:
        """The number that a file or folder keeps however it is renamed; None when there is none of this name."""
        with java_errors(f"looking at {name}", REMEDY):
            status = self.java.getClient().getFileInfo(self.path(name).toUri().getPath())
            return None if status is None else int(status.getFileId())

    def size(self, name: str) -> int | None:
        """How many bytes a file has; None where no file, but perhaps a folder, has this name."""
        with java_errors(f"looking at {name}", REMEDY):
            status = self.java.getClient().getFileInfo(self.path(name).toUri().getPath())
            return None if status is None or status.isDirectory() else int(status.getLen())

    def entries(self, folder: str) -> list[Entry]:
        """The entries of a folder, by name; none when there is no such folder."""
        with java_errors(f"listing {folder}", REMEDY):
            if not self.java.exists(self.path(folder)):
                return []
            statuses = self.java.listStatus(self.path(folder))
            return [
                Entry(str(one.getPath().getName()), int(one.getLen()), int(one.getModificationTime()) / 1000)
                for one in statuses
            ]

    def touch(self, name: str) -> None:
        """Let a file have changed now; renaming alone does not tell."""
        with java_errors(f"changing the time of {name}", REMEDY):
            self.java.setTimes(self.path(name), int(time.time() * 1000), -1)

    def amount(self, name: str) -> Amount:
        """How many files and bytes there are."""
        with java_errors(f"looking at {name}", REMEDY):
            found = self.java.getContentSummary(self.path(name))
            return Amount(int(found.getFileCount()), int(found.getLength()))

    def check_readable(self, name: str) -> None:
        """HadoopError when a file or folder is not there, or may not be read by this user."""
        with java_errors(f"looking at {name}", REMEDY):
            self.java.access(self.path(name), java("org.apache.hadoop.fs.permission.FsAction").READ)

    def upload(self, local: Path, name: str) -> None:
        """Copy a local file, replacing an older one."""
        with java_errors(f"uploading {local} to {name}", REMEDY):
            self.java.copyFromLocalFile(
                False, True, java("org.apache.hadoop.fs.Path")(f"file://{local}"), self.path(name)
            )

    def download(self, name: str, local: Path) -> None:
        """Copy a file to this machine, or a folder with all below it, however large."""
        with java_errors(f"downloading {name} to {local}", REMEDY):
            target = java("org.apache.hadoop.fs.Path")(f"file://{local.absolute()}")
            self.java.copyToLocalFile(False, self.path(name), target, True)  # without a file of checksums beside it

    def read(self, name: str) -> bytes:
        """The content of a whole file; of one that is being written, or whose writer was killed, what has arrived."""
        with java_errors(f"reading {name}", REMEDY):
            path = self.path(name)
            stream = self.java.open(path)
            try:
                # The NameNode does not know how much of a file has arrived that is open for writing; the stream asks.
                asks = hasattr(stream, "getVisibleLength")
                size = int(stream.getVisibleLength() if asks else self.java.getFileStatus(path).getLen())
                return b"".join(_read(stream, begin, size) for begin in range(0, size, PIECE_BYTES))
            finally:
                stream.close()

    def copy(self, source: str, target: str, mode: int = 0o644) -> None:
        """Copy a file, however large it is; HadoopError when the target exists."""
        with java_errors(f"copying {source} to {target}", REMEDY):
            copy, target_path = java("org.apache.hadoop.fs.FileUtil").copy, self.path(target)
            copy(self.java, self.path(source), self.java, target_path, False, False, configuration())
            self.java.setPermission(target_path, permission(mode))

    def checksum(self, name: str) -> str:
        """What HDFS has computed of a file's content; files of the same content that it stored alike have the same."""
        with java_errors(f"asking for the checksum of {name}", REMEDY):
            return str(self.java.getFileChecksum(self.path(name)))

    def rename(self, source: str, target: str, overwrite: bool = False) -> None:
        """Move a file or folder in one step; HadoopError when the target exists, or has no parent folder.

        With `overwrite` a file replaces an existing one.
        """
        # Unlike rename(source, target), this form never moves the source into a target folder that exists.
        options = java("org.apache.hadoop.fs.Options$Rename")
        option = options.OVERWRITE if overwrite else options.NONE
        with java_errors(f"renaming {source} to {target}", REMEDY):
            self.java.rename(self.path(source), self.path(target), jpype.JArray(options)([option]))

    def delete(self, name: str) -> None:
        """Delete a file or a whole folder; nothing happens when there is none."""
        with java_errors(f"deleting {name}", REMEDY):
            self.java.delete(self.path(name), True)


def draft_of(name: str) -> str:
    """A name beside that of a file, which no other has; see hadoop.client.drafts."""
    return f"{name}.{secrets.token_hex(4)}"


def _write(stream: Any, content: bytes) -> None:
    for begin in range(0, len(content), PIECE_BYTES):
        stream.write(jpype.JArray(jpype.JByte)(content[begin : begin + PIECE_BYTES]))


def _read(stream: Any, begin: int, size: int) -> bytes:
    """One piece of a file of that size."""
    piece = jpype.JArray(jpype.JByte)(min(PIECE_BYTES, size - begin))
    stream.readFully(begin, piece)
    return bytes(piece)


def permission(mode: int) -> Any:
    """Permission bits as Java has them."""
    return java("org.apache.hadoop.fs.permission.FsPermission")(jpype.JShort(mode))
