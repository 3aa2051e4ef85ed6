"""Reads an image from what tools write: an archive of `docker save`, or an OCI layout, as a folder or a tar archive.

The layout: https://github.com/opencontainers/image-spec/blob/v1.0.2/image-layout.md
"""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from boxes.broker.images import MOST_CONFIGURATION_BYTES
from boxes.broker.manifest import digest_of, layers_of
from jobs.errors import JobError
from jobs.kinds.task.images import zstd

REMEDY = "write it by `docker save`, or as an OCI layout"
_GZIP = b"\x1f\x8b"
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MOST_INDEXES = 8
"""One that leads to another: a file may name itself."""

Open = Callable[[str], IO[bytes]]
"""Opens a file of the archive or folder by its name there; JobError when there is none."""


@dataclass(frozen=True)
class ImageFiles:
    """One image: its configuration, the digests of its layers as they are unpacked, and the layers' files in order."""

    configuration: bytes
    digests: Sequence[str]
    layers: Sequence[str]
    open: Open

    @property
    def id(self) -> str:
        """How tasks name it."""
        return digest_of(self.configuration)

    @contextmanager
    def unpacked(self, number: int) -> Iterator[IO[bytes]]:
        """A layer without its compression; OSError and EOFError when it cannot be read."""
        with self.open(self.layers[number]) as packed:
            begin = packed.read(len(zstd.MAGIC))
            packed.seek(0)
            if begin.startswith(_GZIP):
                yield gzip.GzipFile(fileobj=packed)  # type: ignore[misc]
            elif begin == zstd.MAGIC:
                with zstd.unpacking(packed) as unpacked:
                    yield unpacked
            else:
                yield packed


@contextmanager
def read_image(source: Path) -> Iterator[ImageFiles]:
    """The one image of an archive or a folder; JobError when it holds none, more than one, or something else."""
    with _opener(source) as open_file:
        names = _named_by_docker(open_file) or _named_by_oci(open_file)
        configuration = _small(open_file, names[0])
        digests = layers_of(configuration)
        if len(digests) != len(names[1]):
            raise JobError(f"its configuration names {len(digests)} layers and not {len(names[1])}", remedy=REMEDY)
        yield ImageFiles(configuration, digests, names[1], open_file)


@contextmanager
def _opener(source: Path) -> Iterator[Open]:
    if source.is_dir():
        yield lambda name: _open_below(source, name)
        return
    with _opened(source) as archive:
        yield lambda name: _open_member(archive, name)


def _opened(source: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(source, mode="r:")
    except (tarfile.TarError, EOFError) as error:
        raise JobError(f"it is not a tar archive of an image: {error}", remedy=REMEDY) from error


def _open_below(folder: Path, name: str) -> IO[bytes]:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise JobError(f"it has no {name!r}", remedy=REMEDY)
    return path.open("rb")


def _open_member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    """By its name, or as `tar` of the folder `.` writes it."""
    for one in (name, f"./{name}"):
        try:
            if found := archive.extractfile(one):
                return found
        except (KeyError, tarfile.TarError, OSError, RecursionError):
            continue
    raise JobError(f"it has no {name!r}", remedy=REMEDY)


def _named_by_docker(open_file: Open) -> tuple[str, list[str]] | None:
    """The names of the configuration and the layers, as Docker's own manifest has them; None without one."""
    try:
        listed = _json(_small(open_file, "manifest.json"))
    except JobError:
        return None
    with _in_form("manifest.json"):
        (one,) = listed
        return str(one["Config"]), [str(name) for name in one["Layers"]]


def _named_by_oci(open_file: Open) -> tuple[str, list[str]]:
    described = _json(_small(open_file, "index.json"))
    for _ in range(_MOST_INDEXES):
        with _in_form("its index"):
            (one,) = described["manifests"]
            kind, name = one.get("mediaType"), _blob(one)
        described = _json(_small(open_file, name))
        if kind not in _INDEXES:
            break
    else:
        raise JobError(f"its index leads to more than {_MOST_INDEXES} others", remedy=REMEDY)
    with _in_form("its manifest"):
        return _blob(described["config"]), [_blob(layer) for layer in described["layers"]]


def _blob(described: Any) -> str:
    return "blobs/" + str(described["digest"]).replace(":", "/")


@contextmanager
def _in_form(what: str) -> Iterator[None]:
    """JobError when a file has another form, or names another number of images than one."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JobError(f"{what} does not name exactly one image", remedy=REMEDY) from error


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise JobError("it holds what is not JSON", remedy=REMEDY) from None


def _small(open_file: Open, name: str) -> bytes:
    with open_file(name) as file:
        content = file.read(MOST_CONFIGURATION_BYTES + 1)
    if len(content) > MOST_CONFIGURATION_BYTES:
        raise JobError(f"{name!r} is too large", remedy=REMEDY)
    return content
