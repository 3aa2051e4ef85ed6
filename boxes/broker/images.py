"""Checks an image's archive byte by byte before Docker sees it.

The id of an image is the SHA-256 of its configuration, which holds the SHA-256 of each layer. So an operator who allows
an id allows exactly these bytes. What else an archive holds - other images, names under which Docker would find them -
is left out: Docker gets a new archive.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from boxes.broker.manifest import digest_of, layers_of
from boxes.broker.order import MOST_LAYER_BYTES, Refusal

MOST_CONFIGURATION_BYTES = 4 << 20
PIECE_BYTES = 1 << 20
SPARE_BYTES = 1 << 30
"""Of the disk, which stays free."""
_GZIP = b"\x1f\x8b"
_REMEDY = "write the archive by `docker save`"


def image_of(archive: IO[bytes]) -> str:
    """The id of the one image that an archive holds; Refusal when there is another number of them."""
    with _refusing(), _opened(archive) as read:
        _, configuration = _configuration(read)
    return digest_of(configuration)


@contextmanager
def checked(archive: IO[bytes], image: str) -> Iterator[IO[bytes]]:
    """A new archive, in an unnamed file, of nothing but that image; Refusal when its bytes are not those of its id."""
    with _refusing(), _opened(archive) as read:
        layers, configuration = _configuration(read)
        if digest_of(configuration) != image:
            held = digest_of(configuration)
            raise Refusal(f"the archive holds {held} and not {image}", "send the archive of that image")
        expected = _expected(configuration, len(layers))
        names = [f"{number}.tar" for number in range(len(layers))]
        with _temporary() as made:
            with tarfile.open(fileobj=made, mode="w") as write:
                manifest = [{"Config": "image.json", "RepoTags": None, "Layers": names}]
                _add(write, "manifest.json", io.BytesIO(json.dumps(manifest).encode()))
                _add(write, "image.json", io.BytesIO(configuration))
                for name, layer, digest in zip(names, layers, expected, strict=True):
                    with _member(read, layer) as packed, _unpacked(packed, digest) as content:
                        _add(write, name, content)
            made.seek(0)
            yield made


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a file."""
    while piece := file.read(PIECE_BYTES):
        yield piece


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse what a tar archive may say that nobody writes: Python's reader has many words for it."""
    try:
        yield
    except (tarfile.TarError, ValueError, OverflowError, EOFError, KeyError, IndexError, RecursionError) as error:
        raise Refusal(f"it is not a tar archive of an image: {error}", _REMEDY) from error


def _opened(archive: IO[bytes]) -> tarfile.TarFile:
    archive.seek(0)
    try:
        return tarfile.open(fileobj=archive, mode="r:")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise Refusal(f"it is not a tar archive of an image: {error}", _REMEDY) from error


def _configuration(read: tarfile.TarFile) -> tuple[list[str], bytes]:
    """The names of the layers' members and the configuration of the one image."""
    manifest = _parsed(_small(read, "manifest.json"))
    if not isinstance(manifest, list) or len(manifest) != 1:
        raise Refusal("the archive must hold exactly one image", _REMEDY)
    one = manifest[0] if isinstance(manifest[0], dict) else {}
    layers, name = one.get("Layers"), one.get("Config")
    if not isinstance(layers, list) or not all(isinstance(layer, str) for layer in [*layers, name]):
        raise Refusal("the archive's list of layers is not what Docker writes", _REMEDY)
    return layers, _small(read, str(name))


def _expected(configuration: bytes, count: int) -> list[str]:
    """The SHA-256 of each layer as it is unpacked."""
    found = layers_of(configuration)
    if len(found) != count:
        raise Refusal("the image's configuration does not name its layers", _REMEDY)
    return found


def _member(read: tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        found = read.extractfile(name)
    except (KeyError, tarfile.TarError, OSError, RecursionError):
        found = None
    if found is None:
        raise Refusal(f"the archive has no {name!r}", _REMEDY)
    return found


def _small(read: tarfile.TarFile, name: str) -> bytes:
    with _member(read, name) as file:
        content = file.read(MOST_CONFIGURATION_BYTES + 1)
    if len(content) > MOST_CONFIGURATION_BYTES:
        raise Refusal(f"{name!r} of the archive is too large", _REMEDY)
    return content


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise Refusal("the archive holds what is not JSON", _REMEDY) from None


@contextmanager
def _unpacked(packed: IO[bytes], digest: str) -> Iterator[IO[bytes]]:
    """A layer without its compression, in an unnamed file; Refusal when it is not the one that `digest` names."""
    is_packed = packed.read(2) == _GZIP
    packed.seek(0)
    source: IO[bytes] = gzip.GzipFile(fileobj=packed) if is_packed else packed  # type: ignore[assignment]
    found = hashlib.sha256()
    with _temporary() as content:
        try:
            for piece in pieces(source):
                found.update(piece)
                content.write(piece)
                check_room(content.fileno(), tempfile.gettempdir())
                if content.tell() > MOST_LAYER_BYTES:  # a few bytes can be packed zeros without end
                    raise Refusal(
                        f"a layer has more than {MOST_LAYER_BYTES >> 30} GiB", "build the image in more steps"
                    )
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise Refusal(f"a layer cannot be read: {error}", _REMEDY) from error
        if f"sha256:{found.hexdigest()}" != digest:
            raise Refusal(f"a layer is not the one that the image names, {digest}", "send the archive again")
        content.seek(0)
        yield content


def check_room(place: int | str, called: str) -> None:
    """Refusal when the disk of an open file or a folder is nearly full: root may use what others may not."""
    disk = os.statvfs(place)
    if disk.f_bavail * disk.f_frsize < SPARE_BYTES:
        raise Refusal("the node's disk has no room for the image", f"free some of {called} there")


def _temporary() -> IO[bytes]:
    """A file without a name, which is gone once it is closed."""
    return tempfile.TemporaryFile()


def _add(write: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size = content.seek(0, io.SEEK_END)
    content.seek(0)
    write.addfile(member, content)
