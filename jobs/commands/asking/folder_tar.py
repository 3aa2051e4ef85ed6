"""The files that go with a task: a folder as a tar archive that is the same whenever the folder is.

Names are sorted; owners and times are left out, and of rights all but whether a file can be executed.
"""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from jobs.errors import JobError

LARGEST = 256 << 20  # bytes of an archive, as the service takes it unless it is told otherwise


def pack(folder: Path, archive: Path) -> None:
    """Write the files of a folder into a new archive; JobError names what cannot go along."""
    root = folder.resolve()
    try:
        with archive.open("wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in _entries(root):
                _add(tar, root, path)
                if file.tell() > LARGEST:
                    raise JobError(
                        f"{folder} is larger than {LARGEST >> 20} MiB",
                        remedy="leave out what the program does not need, and put large data into HDFS",
                    )
    except OSError as error:
        raise JobError(f"{folder} cannot be packed: {error.filename or ''} {error.strerror or error}") from error


def _entries(folder: Path) -> Iterator[Path]:
    """All that is below a folder, sorted by name, each folder before what is in it."""
    for path in sorted(folder.iterdir(), key=lambda one: os.fsencode(one.name)):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _entries(path)


def _add(tar: tarfile.TarFile, root: Path, path: Path) -> None:
    found = path.lstat()
    entry = tarfile.TarInfo(str(path.relative_to(root)))
    entry.mode = 0o755 if stat.S_ISDIR(found.st_mode) or found.st_mode & stat.S_IXUSR else 0o644
    if stat.S_ISDIR(found.st_mode):
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    elif stat.S_ISLNK(found.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, _inner_target(root, path)
        tar.addfile(entry)
    elif stat.S_ISREG(found.st_mode):
        _add_file(tar, entry, path)
    else:
        raise JobError(f"{path} is neither a file nor a folder nor a link", remedy="leave it out of the folder")


def _add_file(tar: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> None:
    """What is opened is the file that was looked at: no link that took its place meanwhile."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        entry.size = os.fstat(file.fileno()).st_size
        if entry.size > LARGEST:
            raise JobError(
                f"{path} is larger than {LARGEST >> 20} MiB", remedy="put it into HDFS, and name it to the program"
            )
        tar.addfile(entry, file)


def _inner_target(root: Path, path: Path) -> str:
    """Where a link leads, which must be below the folder, whatever the folder is called: nothing else travels.

    One that goes up behind a name is straightened, as the task unpacks only links that go up at first.
    """
    target = path.readlink()
    written = Path(os.path.normpath(path.parent.relative_to(root) / target))
    try:
        is_inner = not target.is_absolute() and ".." not in written.parts and path.resolve().is_relative_to(root)
    except RuntimeError:  # links that lead to each other
        is_inner = False
    if not is_inner:
        raise JobError(f"the link {path} leaves the folder, to {target}", remedy="put the file itself into the folder")
    is_straight = ".." not in target.parts[target.parts.count("..") :]
    return str(target) if is_straight else os.path.relpath(path.resolve(), path.parent)
