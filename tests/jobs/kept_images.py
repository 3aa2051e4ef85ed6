"""Images in a folder of this machine in the place of HDFS, and the files of which they are made."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from bench.image_here import write_archive
from environments import store
from hadoop.client.filesystem import Entry, FileSystem
from hadoop.errors import HadoopError
from jobs.kinds.task.images import layer_blobs

HOME = "/user/operator"
PIECE_BYTES = 1 << 12


class Folder:
    """A folder with the methods of a FileSystem."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.written: list[str] = []

    def path(self, name: str) -> Path:
        return self._root / name.lstrip("/")

    def home(self) -> str:
        return HOME

    def exists(self, name: str) -> bool:
        return self.path(name).exists()

    def entries(self, folder: str) -> list[Entry]:
        place = self.path(folder)
        found = [(one.name, one.stat()) for one in sorted(place.iterdir())] if place.exists() else []
        return [Entry(name, about.st_size, about.st_mtime) for name, about in found]

    def make_folder(self, name: str, mode: int = 0o700) -> None:
        self.path(name).mkdir(parents=True, exist_ok=True)

    def write(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_bytes(content)

    def exchange(self, name: str, content: bytes) -> None:
        FileSystem.exchange(cast("FileSystem", self), name, content)

    def read(self, name: str) -> bytes:
        self._check_there(name)
        return self.path(name).read_bytes()

    def _check_there(self, name: str) -> None:
        if not self.path(name).exists():
            raise HadoopError(f"File does not exist: {name}")

    @contextmanager
    def open_writer(self, name: str, block_bytes: int | None = None) -> Iterator[Callable[[bytes], None]]:
        self.written.append(name)
        with self.path(name).open("xb") as file:
            yield lambda piece: cast("None", file.write(piece))

    def download(self, name: str, local: Path) -> None:
        self._check_there(name)
        shutil.copyfile(self.path(name), local)

    def rename(self, source: str, target: str, overwrite: bool = False) -> None:
        self._check_there(source)
        if self.path(target).exists() and not overwrite:
            raise HadoopError(f"{target} exists")
        self.path(source).rename(self.path(target))

    def touch(self, name: str) -> None:
        self._check_there(name)
        self.path(name).touch()

    def delete(self, name: str) -> None:
        self.path(name).unlink(missing_ok=True)


def played_hdfs(root: Path, monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    """A FileSystem for whoever keeps images."""

    def chunks(filesystem: Folder, name: str) -> Generator[bytes, None, None]:
        content = filesystem.read(name)
        yield from (content[begin : begin + PIECE_BYTES] for begin in range(0, len(content), PIECE_BYTES))

    monkeypatch.setattr(layer_blobs, "chunks", chunks)
    monkeypatch.setattr(store, "chunks", chunks)
    return cast("FileSystem", Folder(root))


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def configuration_of(layers: Sequence[bytes], **more: object) -> bytes:
    body = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [*map(digest, layers)]}}
    return json.dumps({**body, **more}).encode()


def save(path: Path, layers: Sequence[bytes], configuration: bytes | None = None) -> str:
    """Write an image as `docker save` does, and return its id."""
    content = configuration_of(layers) if configuration is None else configuration
    write_archive(path, content, list(layers))
    return digest(content)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "+gzip": gzip.compress,
    "+zstd": lambda content: bytes(pa.Codec("zstd").compress(content)),
}


def lay_out(folder: Path, layers: Sequence[bytes], packing: str, is_nested: bool = False) -> str:
    """Write an image as an OCI layout, and return its id."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def keep(content: bytes, kind: str) -> dict[str, Any]:
        (blobs / hashlib.sha256(content).hexdigest()).write_bytes(content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(content), "size": len(content)}

    configuration = configuration_of(layers)
    manifest = {
        "schemaVersion": 2,
        "config": keep(configuration, "config.v1+json"),
        "layers": [keep(PACKERS[packing](layer), f"layer.v1.tar{packing}") for layer in layers],
    }
    index = {"schemaVersion": 2, "manifests": [keep(json.dumps(manifest).encode(), "manifest.v1+json")]}
    if is_nested:
        index = {"schemaVersion": 2, "manifests": [keep(json.dumps(index).encode(), "index.v1+json")]}
    (folder / "index.json").write_text(json.dumps(index))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return digest(configuration)


def pack(folder: Path, archive: Path) -> None:
    with tarfile.open(archive, "w") as write:
        write.add(folder, ".")
