"""Reads an image from what tools write: an archive of `docker save`, or an OCI layout, as a folder or a tar archive.

The layout: https://github.com/opencontainers/image-spec/blob/v1.0.2/image-layout.md
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from environments import zstd
from environments.errors import EnvError

REMEDY = "write it by `docker save`, or as an OCI layout"
UNREADABLE = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, ValueError, RecursionError)
"""What Python's readers say of a damaged archive; it may be packed."""
_MOST_JSON_BYTES = 4 << 20
_PIECE_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MOST_INDEXES = 8
"""One that leads to another: a file may name itself."""

Open = Callable[[str], IO[bytes]]
"""Opens a file of the archive or folder by its name there; _Missing when there is none."""


class _Missing(EnvError):
    """The archive or folder has no such file."""


@dataclass(frozen=True)
class ImageFiles:
    """One image: its configuration, the digests of its layers as they are unpacked, and the layers' files in order."""

    configuration: bytes
    settings: Mapping[str, Any]
    digests: Sequence[str]
    layers: Sequence[str]
    open: Open

    def read_layer(self, number: int) -> Iterator[bytes]:
        """A layer without its compression, not yet compared with its digest; EnvError when it cannot be read."""
        try:
            with self.open(self.layers[number]) as packed, _unpacking(packed) as content:
                while piece := content.read(_PIECE_BYTES):
                    yield piece
        except (*UNREADABLE, OSError) as error:
            raise EnvError(f"its layer {number + 1} cannot be read: {error}", remedy="write the image again") from error


@contextmanager
def read_image(source: Path) -> Iterator[ImageFiles]:
    """The one image of an archive or a folder; EnvError when it holds none, more than one, or something else."""
    with _opener(source) as open_file:
        name, layers = _named_by_docker(open_file) or _named_by_oci(open_file)
        configuration = _small(open_file, name)
        settings, digests = _parse(configuration)
        if len(digests) != len(layers):
            raise EnvError(f"its configuration names {len(digests)} layers and not {len(layers)}", remedy=REMEDY)
        yield ImageFiles(configuration, settings, digests, layers, open_file)


@contextmanager
def _opener(source: Path) -> Iterator[Open]:
    if source.is_dir():
        yield lambda name: _open_below(source, name)
        return
    with _opened(source) as archive:
        yield lambda name: _open_member(archive, name)


def _opened(source: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(source)
    except UNREADABLE as error:
        raise EnvError("it is not a tar archive of an image", remedy=REMEDY) from error


def _open_below(folder: Path, name: str) -> IO[bytes]:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise _Missing(f"it has no {name!r}", remedy=REMEDY)
    return path.open("rb")


def _open_member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    """By its name, or as `tar` of the folder `.` writes it."""
    for one in (name, f"./{name}"):
        try:
            if found := archive.extractfile(one):
                return found
        except KeyError:
            continue
        except (*UNREADABLE, OSError) as error:
            raise EnvError(f"its {name!r} cannot be read: {error}", remedy="write the image again") from error
    raise _Missing(f"it has no {name!r}", remedy=REMEDY)


@contextmanager
def _unpacking(packed: IO[bytes]) -> Iterator[IO[bytes]]:
    begin = packed.read(len(zstd.MAGIC))
    packed.seek(0)
    if begin.startswith(_GZIP):
        yield gzip.GzipFile(fileobj=packed)  # type: ignore[misc]
    elif begin == zstd.MAGIC:
        with zstd.unpacking(packed) as content:
            yield content
    else:
        yield packed


def _named_by_docker(open_file: Open) -> tuple[str, list[str]] | None:
    """The names of the configuration and the layers, as Docker's own manifest has them; None without one."""
    try:
        listed = _json(open_file, "manifest.json")
    except _Missing:
        return None
    with _in_form("manifest.json"):
        one = _only(listed, "manifest.json")
        return str(one["Config"]), [str(name) for name in one["Layers"]]


def _named_by_oci(open_file: Open) -> tuple[str, list[str]]:
    described = _json(open_file, "index.json")
    for _ in range(_MOST_INDEXES):
        with _in_form("its index"):
            one = _only(described["manifests"], "its index")
            kind, name = one.get("mediaType"), _blob(one)
        described = _json(open_file, name)
        if kind not in _INDEXES:
            break
    else:
        raise EnvError(f"its index leads to more than {_MOST_INDEXES} others", remedy=REMEDY)
    with _in_form("its manifest"):
        return _blob(described["config"]), [_blob(layer) for layer in described["layers"]]


def _only(listed: Sequence[Any], where: str) -> Any:
    if len(listed) != 1:
        raise EnvError(f"{where} names {len(listed)} images", remedy="write one alone, for one architecture")
    return listed[0]


def _blob(described: Any) -> str:
    return "blobs/" + str(described["digest"]).replace(":", "/")


@contextmanager
def _in_form(what: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EnvError(f"{what} does not describe an image", remedy=REMEDY) from error


def _parse(configuration: bytes) -> tuple[Mapping[str, Any], list[str]]:
    """What it says, and the digest of each layer, the lowest first."""
    settings = _loads(configuration, "the image's configuration")
    found = settings.get("rootfs") if isinstance(settings, dict) else None
    named = found.get("diff_ids") if isinstance(found, dict) else None
    if not isinstance(named, list) or not all(isinstance(one, str) and _DIGEST.fullmatch(one) for one in named):
        raise EnvError("the image's configuration does not name its layers", remedy=REMEDY)
    return settings, named


def _json(open_file: Open, name: str) -> Any:
    return _loads(_small(open_file, name), name)


def _loads(content: bytes, what: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise EnvError(f"{what} is not JSON", remedy=REMEDY) from None


def _small(open_file: Open, name: str) -> bytes:
    try:
        with open_file(name) as file:
            content = file.read(_MOST_JSON_BYTES + 1)
    except (*UNREADABLE, OSError) as error:
        raise EnvError(f"its {name!r} cannot be read: {error}", remedy="write the image again") from error
    if len(content) > _MOST_JSON_BYTES:
        raise EnvError(f"{name!r} is too large", remedy=REMEDY)
    return content
