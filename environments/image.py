"""Unpacks archives of images, as `docker save` writes them and as OCI describes them, into one folder.

Layers are laid over each other; an entry `.wh.NAME` takes NAME of those below away, `.wh..wh..opq` all in its folder:
https://github.com/opencontainers/image-spec/blob/main/layer.md. An archive is not trusted.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import platform
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

from environments.errors import EnvError

_AWAY, _ALL_AWAY = ".wh.", ".wh..wh..opq"
_SPECIAL = 0o6000
_MOST_JSON_BYTES = 4 << 20
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_GZIP = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
_ANEW = "write it with docker save"
_UNREADABLE = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, ValueError, RecursionError)
"""What Python's readers say of a damaged archive; it may be packed."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As images call them; others have the same name."""
_MADE_BY_BOXES = frozenset({"dev", "proc", "sys"})
"""Devices and the like in these folders are the node's, so those of images are left out."""


def unpack(archive: Path, folder: Path) -> dict[str, str]:
    """Make a folder of an image, and tell its variables of the environment.

    EnvError when there is not exactly one image in the archive, or it may not be shown, or a layer has other bytes than
    the image names.
    """
    folder.mkdir()
    try:
        with tarfile.open(archive) as tar:
            layers, variables = _describe(tar, str(archive))
            for name, digest in layers:
                packed = _content(tar, name, str(archive))
                with (
                    _unpacked(packed, digest, folder.parent, str(archive)) as content,
                    tarfile.open(fileobj=content, mode="r:") as layer,
                ):
                    _lay(layer, folder)
            return variables
    except _UNREADABLE as error:
        raise EnvError(f"{archive} cannot be read as an image ({error})", remedy="save it again") from error


def _describe(tar: tarfile.TarFile, where: str) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Name and digest of each layer of an image, the lowest first, and the variables that any program in it gets."""
    try:
        image = _find_image(tar, where)
        settings = _read(tar, image["Config"], where)
        _check_architecture(settings.get("architecture", ""), where)
        digests = settings["rootfs"]["diff_ids"]
        return list(zip(image["Layers"], digests, strict=True)), _variables(settings, where)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise EnvError(f"{where} does not describe its image as others do", remedy=_ANEW) from error


@contextmanager
def _unpacked(packed: IO[bytes], digest: str, folder: Path, where: str) -> Iterator[IO[bytes]]:
    """A layer without its compression, in a file without a name; EnvError for another than the image names."""
    is_packed = packed.read(len(_GZIP)) == _GZIP
    packed.seek(0)
    source = cast("IO[bytes]", gzip.GzipFile(fileobj=packed) if is_packed else packed)
    found = hashlib.sha256()
    with TemporaryFile(dir=folder) as content:
        while piece := source.read(_PIECE_BYTES):
            found.update(piece)
            content.write(piece)
        if f"sha256:{found.hexdigest()}" != digest:
            raise EnvError(f"{where} holds another layer than its image names, {digest}", remedy=_ANEW)
        content.seek(0)
        yield content


def _check_architecture(architecture: str, where: str) -> None:
    own = ARCHITECTURES.get(platform.machine(), platform.machine())
    if architecture not in ("", own):
        raise EnvError(
            f"{where} is an image for {architecture}, and this machine is {own}", remedy="make it on one that fits"
        )


def _find_image(tar: tarfile.TarFile, where: str) -> dict[str, Any]:
    """Names of its files, of layers the lowest first, as `docker save` tells; OCI's archives by Docker tell so, too."""
    if "manifest.json" in tar.getnames():
        images = _read(tar, "manifest.json", where)
    else:
        images = [_of_oci(tar, one, where) for one in _read(tar, "index.json", where)["manifests"]]
    if len(images) != 1:
        raise EnvError(f"{where} has {len(images)} images", remedy="save one alone")
    return cast("dict[str, Any]", images[0])


def _of_oci(tar: tarfile.TarFile, described: dict[str, Any], where: str) -> dict[str, Any]:
    manifest = _read(tar, _blob(described), where)
    if "layers" not in manifest:
        raise EnvError(f"{where} has images of several architectures", remedy="save one alone, by --platform")
    return {"Layers": [_blob(one) for one in manifest["layers"]], "Config": _blob(manifest["config"])}


def _variables(settings: dict[str, Any], where: str) -> dict[str, str]:
    matches = [(one, _VARIABLE.fullmatch(one)) for one in (settings.get("config") or {}).get("Env") or ()]
    for one, match in matches:
        if not match:
            raise EnvError(f"{where} has the variable {one!r}, which has no name", remedy="make the image without it")
    return {match[1]: match[2] for _, match in matches if match}


def _blob(described: dict[str, Any]) -> str:
    return "blobs/" + str(described["digest"]).replace(":", "/")


def _content(tar: tarfile.TarFile, name: str, where: str) -> IO[bytes]:
    try:
        content = tar.extractfile(name)
    except KeyError:
        content = None
    if content is None:
        raise EnvError(f"{where} is not an image: it has no {name}", remedy=_ANEW)
    return content


def _read(tar: tarfile.TarFile, name: str, where: str) -> Any:
    try:
        return json.loads(_content(tar, name, where).read(_MOST_JSON_BYTES))
    except ValueError as error:
        raise EnvError(f"{name} of {where} is not JSON ({error})", remedy="save it again") from error


def _lay(layer: tarfile.TarFile, folder: Path) -> None:
    """Lay one layer over what is there; what it takes away is below it, and so goes first."""
    members = [member for member in layer if _words(member.name)]
    for member in members:
        *above, last = _words(member.name)
        if last.startswith(_AWAY) and (place := _find(folder, above)):
            gone = list(place.iterdir()) if last == _ALL_AWAY else [place / last.removeprefix(_AWAY)]
            for one in gone:
                _remove(one)
    for member in members:
        if not _words(member.name)[-1].startswith(_AWAY):
            _put(layer, member, folder)


def _words(name: str) -> list[str]:
    words = [word for word in name.split("/") if word not in ("", ".")]
    if ".." in words or any(word in (_AWAY, _AWAY + ".", _AWAY + "..") for word in words):
        raise EnvError(f"{name} lies outside of the image", remedy="make the image without it")
    return words


def _find(folder: Path, words: Sequence[str]) -> Path | None:
    """A folder of the image, None when it is not there; no link is followed, as that could lead out of it."""
    for word in words:
        folder /= word
        if folder.is_symlink():
            raise EnvError(f"{'/'.join(words)} is reached through the link {word}", remedy="make the image without it")
        if not folder.is_dir():
            return None
    return folder


def _put(layer: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    words = _words(member.name)
    if member.isfile() and member.mode & _SPECIAL:
        raise EnvError(f"{member.name} has a setuid or setgid bit", remedy="take it away with chmod ug-s in the image")
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        if words[0] in _MADE_BY_BOXES:
            return
        raise EnvError(f"{member.name} is not a file, folder or link", remedy="make the image without it")
    parent = folder
    for count in range(1, len(words)):
        parent = _find(folder, words[:count]) or _make_folder(parent / words[count - 1])
    place = parent / words[-1]
    if member.isdir():
        if place.is_symlink() or not place.is_dir():
            _make_folder(place)
        place.chmod(member.mode & 0o777 | 0o700)
        return
    source = _linked(member, folder) if member.islnk() else None
    if source == place:
        return
    _remove(place)
    if source:
        os.link(source, place, follow_symlinks=False)
    elif member.issym():
        place.symlink_to(member.linkname)
    else:
        with cast("IO[bytes]", layer.extractfile(member)) as content, place.open("xb") as file:
            shutil.copyfileobj(content, file)
        place.chmod(member.mode & 0o777 | 0o400)


def _make_folder(place: Path) -> Path:
    _remove(place)
    place.mkdir()
    return place


def _linked(member: tarfile.TarInfo, folder: Path) -> Path:
    *above, last = _words(member.linkname) or [""]
    place = _find(folder, above)
    if not last or place is None or not os.path.lexists(place / last) or (place / last).is_dir():
        raise EnvError(f"{member.name} is linked to {member.linkname}, which it does not hold", "make the image anew")
    return place / last


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
