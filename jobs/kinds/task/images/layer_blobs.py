"""Layers of images in HDFS, each once however many images have it, by the digest of its unpacked bytes.

blobs/sha256-HEX            a configuration
blobs/sha256-HEX.tar.zst    a layer
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from typing import IO, NamedTuple

from environments.zstd import Pieces, Write, compressing, unpacking
from hadoop.client.append_stream import chunks
from hadoop.client.filesystem import SPREAD_BYTES, FileSystem, draft_of
from hadoop.errors import HadoopError
from jobs.errors import JobError

FOLDER = "blobs"
PIECE_BYTES = 1 << 20
_LAYER = ".tar.zst"


class Needed(NamedTuple):
    """What images are there, and the digests of their layers."""

    images: Collection[str]
    digests: Collection[str]


class Damaged(Exception):
    """A layer in HDFS has other bytes than it had."""


class LayerBlobs:
    """The blobs in a folder of HDFS; every method raises HadoopError."""

    def __init__(self, filesystem: FileSystem, folder: str) -> None:
        self._filesystem = filesystem
        self._folder = f"{folder}/{FOLDER}"

    def layer(self, digest: str) -> str:
        """The path of a layer, which may not be there."""
        return f"{self.configuration(digest)}{_LAYER}"

    def configuration(self, image: str) -> str:
        """The path of a configuration, which may not be there."""
        return f"{self._folder}/{image.replace(':', '-')}"

    def put_configuration(self, image: str, content: bytes) -> None:
        """Keep a configuration."""
        self._filesystem.make_folder(self._folder)
        self._filesystem.exchange(self.configuration(image), content)

    def has_layer(self, digest: str) -> bool:
        """Whether it is there."""
        return self._filesystem.exists(self.layer(digest))

    def has_all(self, image: str, digests: Collection[str]) -> bool:
        """Whether the configuration and these layers are there."""
        return self._filesystem.exists(self.configuration(image)) and all(map(self.has_layer, digests))

    def put_layer(self, digest: str, content: IO[bytes] | Pieces) -> int:
        """Read a layer to its end, keep it unless it is there, and return its bytes, as unpacked as they came.

        JobError when it has another digest; then nothing is kept.
        """
        if self.has_layer(digest):
            return _pass_on(content, digest, lambda _: None)
        self._filesystem.make_folder(self._folder)
        draft = draft_of(self.layer(digest))
        try:
            with self._filesystem.open_writer(draft, block_bytes=SPREAD_BYTES) as write, compressing(write) as pack:
                size = _pass_on(content, digest, pack)
            self._filesystem.rename(draft, self.layer(digest))
        except BaseException as error:
            with suppress(HadoopError):
                self._filesystem.delete(draft)
            if not (isinstance(error, HadoopError) and self.has_layer(digest)):  # else another has brought it
                raise
        return size

    def kept_bytes(self, digests: Collection[str]) -> int:
        """How much of HDFS, one replica counted, these layers take."""
        sizes = {one.name: one.size_bytes for one in self._filesystem.entries(self._folder)}
        return sum(sizes.get(self.layer(digest).rpartition("/")[2], 0) for digest in set(digests))

    def read_layer(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        """The unpacked bytes from `offset` on; Damaged when they cannot be unpacked, or have another digest.

        The last of them come once all were compared with the digest, so nobody gets all bytes of a damaged layer.
        """
        found, done, held = hashlib.sha256(), 0, b""
        for piece in self._unpacked(digest):
            found.update(piece)
            if held:
                yield held
            held = piece[max(0, offset - done) :]
            done += len(piece)
        if f"sha256:{found.hexdigest()}" != digest:
            raise Damaged(f"{self.layer(digest)} is damaged: its SHA-256 is {found.hexdigest()}")
        if held:
            yield held

    def remove_unneeded(self, find_needed: Callable[[], Needed]) -> Collection[str]:
        """Delete what no image needs any more; the digests of the layers that are needed.

        Files are put away before they are deleted, and what an image needs that was added meanwhile is put back: who
        adds an image looks for its layers after it can be seen to need them.
        """
        away = self._put_away(self._paths(find_needed()))
        needed = find_needed()
        kept = self._paths(needed)
        for path, draft in away.items():
            if path in kept:
                self._put_back(draft, path)
            else:
                self._filesystem.delete(draft)
        return needed.digests

    def _paths(self, needed: Needed) -> set[str]:
        return {*map(self.configuration, needed.images), *map(self.layer, needed.digests)}

    def _put_away(self, needed: Collection[str]) -> dict[str, str]:
        """Rename all but these; by path, the name that a file has now."""
        away: dict[str, str] = {}
        for one in self._filesystem.entries(self._folder):
            path = f"{self._folder}/{one.name}"
            if path not in needed and one.name.count(".") in (0, 2):  # no draft
                draft = draft_of(path)
                try:
                    self._filesystem.touch(path)  # so that it is no old draft, which others may delete
                    self._filesystem.rename(path, draft)
                except HadoopError:
                    if self._filesystem.exists(path):
                        raise
                    continue  # another has put it away
                away[path] = draft
        return away

    def _put_back(self, draft: str, path: str) -> None:
        try:
            self._filesystem.rename(draft, path)
        except HadoopError:
            if not self._filesystem.exists(path):
                raise
            self._filesystem.delete(draft)  # another has brought it anew

    def _unpacked(self, digest: str) -> Iterator[bytes]:
        with closing(chunks(self._filesystem, self.layer(digest))) as pieces:
            try:
                with unpacking(Pieces(pieces)) as stream:
                    while piece := stream.read(PIECE_BYTES):
                        yield piece
            except OSError as error:
                raise Damaged(f"{self.layer(digest)} is damaged: {error}") from error


def _pass_on(content: IO[bytes] | Pieces, digest: str, write: Write) -> int:
    """Write all of a layer; how many bytes it has. JobError when they have another digest than they should."""
    found, size = hashlib.sha256(), 0
    while piece := content.read(PIECE_BYTES):
        found.update(piece)
        write(piece)
        size += len(piece)
    if f"sha256:{found.hexdigest()}" != digest:
        raise JobError(f"a layer is not the one that the image names, {digest}", remedy="write the image again")
    return size


def read_there(filesystem: FileSystem, path: str) -> bytes | None:
    """The content of a file, None when there is none, or it is deleted meanwhile; HadoopError."""
    try:
        return filesystem.read(path)
    except HadoopError:
        if not filesystem.exists(path):
            return None
        return filesystem.read(path)  # HDFS has failed, or the file has come meanwhile
