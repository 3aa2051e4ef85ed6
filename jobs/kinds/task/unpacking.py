"""Unpacks the files of a task so that none gets out of its folder.

The filters of `tarfile` would do that, but the Python of Debian 12, 3.11.2, has none.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath

PROGRAM, PLAIN = 0o755, 0o644
"""The modes of files that their owner may run, and of others."""
_NO_PLACE = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar; TarError when it cannot be read, or holds what is not a folder, a file or a link within."""
    with tarfile.open(archive) as tar:
        for member in tar:
            try:
                _unpack(tar, member, folder)
            except _NO_PLACE as error:
                raise tarfile.TarError(f"there is no place for {member.name}: {error.strerror}") from error


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    parts = [one for one in member.name.split("/") if one not in ("", ".")]
    if ".." in parts:
        raise tarfile.TarError(f"{member.name} leaves the folder")
    for part in parts if member.isdir() else parts[:-1]:
        folder /= part
        _make_folder(folder)
    if member.isdir():
        return
    place = folder.joinpath(*parts[-1:])
    place.unlink(missing_ok=True)  # what follows a link that was unpacked before would leave the folder
    if member.issym():
        _check_link(member, len(parts) - 1)
        place.symlink_to(member.linkname)
    else:
        _copy(tar, member, place)


def _make_folder(place: Path) -> None:
    if place.is_symlink():
        raise tarfile.TarError(f"{place.name} is a link and a folder")
    place.mkdir(exist_ok=True)


def _check_link(member: tarfile.TarInfo, depth: int) -> None:
    """TarError unless a link goes up only at first, from the real folder in which it lies, and not too far.

    What goes up behind the name of another link would go up from where that one leads.
    """
    target = PurePosixPath(member.linkname)
    up = sum(part == ".." for part in target.parts)
    if target.is_absolute() or up > depth or ".." in target.parts[up:]:
        raise tarfile.TarError(f"the link {member.name} leaves the folder, to {member.linkname}")


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """A file; a hard link becomes a copy of the file that it stands for."""
    try:
        file = tar.getmember(member.linkname) if member.islnk() else member
    except KeyError:
        raise tarfile.TarError(f"{member.name} stands for {member.linkname}, which is not there") from None
    source = tar.extractfile(file) if file.isreg() else None
    if source is None:
        raise tarfile.TarError(f"{member.name} is not a file, a folder or a link")
    with source, place.open("xb") as target:
        shutil.copyfileobj(source, target)
    place.chmod(PROGRAM if file.mode & 0o100 else PLAIN)
