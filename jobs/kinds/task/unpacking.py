"""Unpacks the files of a task so that none gets out of its folder.

The filters of `tarfile` would do that, but the Python of Debian 12, 3.11.2, has none.
"""

from __future__ import annotations

import errno
import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

_NO_PLACE = (errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR)
"""What is wrong with an archive, and not with this machine."""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar; TarError when it cannot be read, or holds what is not a folder, a file or a link within."""
    with archive.open("rb") as file:  # where it is not there, the archive is not to blame
        try:
            with tarfile.open(fileobj=file) as tar:
                for member in tar:
                    _unpack(tar, member, folder)
        except OSError as error:
            if error.errno is None or error.errno in _NO_PLACE:  # those of damaged compression have no number
                raise tarfile.TarError(str(error)) from error
            raise
        except (ValueError, OverflowError, RecursionError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise tarfile.TarError(str(error)) from error


def _split(name: str) -> list[str]:
    parts = [one for one in name.split("/") if one not in ("", ".")]
    if ".." in parts:
        raise tarfile.TarError(f"{name} leaves the folder")
    return parts


def _make_folders(folder: Path, parts: Sequence[str]) -> Path:
    """The last of these folders, each in the one before; none is a link, which could lead elsewhere."""
    for part in parts:
        folder /= part
        if folder.is_symlink():
            raise tarfile.TarError(f"{part} is a link and a folder")
        folder.mkdir(exist_ok=True)
    return folder


def _make_parents(folder: Path, parts: Sequence[str]) -> Path:
    """The path of a member, whose folders are made; the folder itself where there are no parts."""
    return _make_folders(folder, parts[:-1]).joinpath(*parts[-1:])


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    if member.size < 0:  # Python 3.11 would go back in the archive and unpack the same for ever
        raise tarfile.TarError(f"{member.name} has the size {member.size}")
    parts = _split(member.name)
    if member.isdir():
        _make_folders(folder, parts)
        return
    place = _make_parents(folder, parts)
    if member.islnk():
        _link(member, folder, place)
        return
    place.unlink(missing_ok=True)  # what follows a link that was unpacked before would leave the folder
    if member.issym():
        _check_link(member, len(parts) - 1)
        place.symlink_to(member.linkname)
    else:
        _copy(tar, member, place)


def _check_link(member: tarfile.TarInfo, depth: int) -> None:
    """TarError unless a link goes up only at first, from the real folder in which it lies, and not too far.

    What goes up behind the name of another link would go up from where that one leads.
    """
    target = PurePosixPath(member.linkname)
    up = sum(part == ".." for part in target.parts)
    if target.is_absolute() or up > depth or ".." in target.parts[up:]:
        raise tarfile.TarError(f"the link {member.name} leaves the folder, to {member.linkname}")


def _link(member: tarfile.TarInfo, folder: Path, place: Path) -> None:
    """One more name for a file that was unpacked before."""
    first = _make_parents(folder, _split(member.linkname))
    if first.is_symlink() or not first.is_file():
        raise tarfile.TarError(f"{member.name} is to be {member.linkname}, which is not a file")
    if first != place:
        place.unlink(missing_ok=True)
        os.link(first, place)


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """A file that its owner reads and writes, nobody else writes, and who may run it by its mode runs."""
    if member.issparse():  # a few bytes could become a full disk
        raise tarfile.TarError(f"{member.name} is sparse, so pack it as a plain file")
    source = tar.extractfile(member) if member.isreg() else None
    if source is None:
        raise tarfile.TarError(f"{member.name} is not a file, a folder or a link")
    with source, place.open("xb") as target:
        shutil.copyfileobj(source, target)
    place.chmod(member.mode & (0o755 if member.mode & 0o100 else 0o644) | 0o600)
