"""Which layer a part of an environment has become, so that it is not unpacked again to find out.

parts/HEX    the layer's digest and its bytes as unpacked, by the hash of the part, its folder and how layers are made
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import NamedTuple

from environments.layer import RECIPE
from environments.manifest import Part
from hadoop.client.filesystem import FileSystem
from jobs.kinds.task.images.layer_blobs import read_there

FOLDER = "parts"
_RECORD = re.compile(r"(sha256:[0-9a-f]{64}) (\d{1,18})")


class PartLayer(NamedTuple):
    """A layer by its digest, and how many bytes it has unpacked."""

    digest: str
    size_bytes: int


class PartLayers:
    """The records in a folder of HDFS; every method raises HadoopError."""

    def __init__(self, filesystem: FileSystem, folder: str) -> None:
        self._filesystem = filesystem
        self._folder = f"{folder}/{FOLDER}"

    def find(self, part: Part) -> PartLayer | None:
        """What it has become, None when that is not known; the layer may have been removed since."""
        return self._read(self._record(part))

    def keep(self, part: Part, layer: PartLayer) -> None:
        """Note what it has become."""
        self._filesystem.make_folder(self._folder)
        self._filesystem.exchange(self._record(part), f"{layer.digest} {layer.size_bytes}".encode())

    def remove_unneeded(self, digests: Collection[str]) -> None:
        """Forget which parts have become other layers than these."""
        for one in self._filesystem.entries(self._folder):
            path = f"{self._folder}/{one.name}"
            if "." not in one.name and ((layer := self._read(path)) is None or layer.digest not in digests):  # no draft
                self._filesystem.delete(path)

    def _record(self, part: Part) -> str:
        return f"{self._folder}/{hashlib.sha256(f'{RECIPE} {part.sha256} {part.at}'.encode()).hexdigest()}"

    def _read(self, path: str) -> PartLayer | None:
        content = read_there(self._filesystem, path) or b""
        match = _RECORD.fullmatch(content.decode(errors="replace"))
        return PartLayer(match[1], int(match[2])) if match else None
