"""Layers of images in HDFS, each once however many images have it, by the digest of its unpacked bytes.

blobs/sha256-HEX            a configuration
blobs/sha256-HEX.tar.zst    a layer
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from typing import IO

from environments.zstd import Pieces, Write, compressing, unpacking
from hadoop.client.append_stream import chunks
from hadoop.client.filesystem import SPREAD_BYTES, FileSystem
from hadoop.errors import HadoopError
from jobs.errors import JobError

FOLDER = "blobs"
PIECE_BYTES = 1 << 20
_LAYER = ".tar.zst"


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
        self._filesystem.write(self.configuration(image), content)

    def has_layer(self, digest: str) -> bool:
        """Whether it is there."""
        return self._filesystem.exists(self.layer(digest))

    def put_layer(self, digest: str, content: IO[bytes] | Pieces) -> int:
        """Read a layer to its end, keep it unless it is there, and return its bytes, as unpacked as they came.

        JobError when it has another digest; then nothing is kept.
        """
        if self.has_layer(digest):
            return _pass_on(content, digest, lambda _: None)
        self._filesystem.make_folder(self._folder)
        draft = f"{self.layer(digest)}.{secrets.token_hex(4)}"
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

    def remove_unneeded(self, images: Collection[str], digests: Collection[str]) -> None:
        """Delete the configurations and layers of all other images than these."""
        needed = {self.configuration(image) for image in images} | {self.layer(digest) for digest in digests}
        for one in self._filesystem.entries(self._folder):
            if (path := f"{self._folder}/{one.name}") not in needed and one.name.count(".") in (0, 2):  # no draft
                self._filesystem.delete(path)

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
