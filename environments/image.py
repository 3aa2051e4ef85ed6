"""Unpacks archives of images, as `docker save` writes them and as OCI describes them, into one folder.

Layers are laid over each other; an entry `.wh.NAME` takes NAME of those below away, `.wh..wh..opq` all in its folder:
https://github.com/opencontainers/image-spec/blob/main/layer.md. An archive is not trusted.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, cast

from environments.errors import EnvError
from environments.image_files import UNREADABLE, read_image

_AWAY, _ALL_AWAY = ".wh.", ".wh..wh..opq"
_SPECIAL = 0o6000
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_ANEW = "write the image again"
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
        with read_image(archive) as files:
            _check_architecture(files.settings.get("architecture", ""))
            variables = _find_variables(files.settings)
            for number, digest in enumerate(files.digests):
                with _unpacked(files.read_layer(number), digest, folder.parent) as content:
                    _lay_archive(content, folder)
            return variables
    except EnvError as error:
        raise EnvError(f"no environment can be made of {archive}: {error.message}", remedy=error.remedy) from error


@contextmanager
def _unpacked(pieces: Iterable[bytes], digest: str, folder: Path) -> Iterator[IO[bytes]]:
    """A layer in a file without a name; EnvError for another than the image names."""
    found = hashlib.sha256()
    with TemporaryFile(dir=folder) as content:
        for piece in pieces:
            found.update(piece)
            content.write(piece)
        if f"sha256:{found.hexdigest()}" != digest:
            raise EnvError(f"a layer is not the one that the image names, {digest}", remedy=_ANEW)
        content.seek(0)
        yield content


def _check_architecture(architecture: str) -> None:
    own = ARCHITECTURES.get(platform.machine(), platform.machine())
    if architecture not in ("", own):
        raise EnvError(
            f"it is an image for {architecture}, and this machine is {own}", remedy="make it on one that fits"
        )


def _find_variables(settings: Mapping[str, Any]) -> dict[str, str]:
    """What any program in an image gets."""
    try:
        matches = [(one, _VARIABLE.fullmatch(one)) for one in (settings.get("config") or {}).get("Env") or ()]
    except (TypeError, AttributeError) as error:
        raise EnvError("its configuration is not in the form of others", remedy=_ANEW) from error
    for one, match in matches:
        if not match:
            raise EnvError(f"it has the variable {one!r}, which has no name", remedy="make the image without it")
    return {match[1]: match[2] for _, match in matches if match}


def _lay_archive(content: IO[bytes], folder: Path) -> None:
    try:
        with tarfile.open(fileobj=content, mode="r:") as layer:
            _lay(layer, folder)
    except UNREADABLE as error:
        raise EnvError(f"a layer cannot be laid out: {error}", remedy=_ANEW) from error


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
