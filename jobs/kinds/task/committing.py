"""What a program leaves, put in place in HDFS at once, and by one attempt only.

An attempt uploads into a folder of its own beside the output, notes in the journal that this folder is whole, and
renames it. A later attempt takes the journal first, so that nothing can be noted any more; then it finishes what was
noted, or takes the unfinished folder away. So an older one that wakes finds either no journal or no folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from jobs.errors import JobError

REMEDY = "choose another output, what is there is never overwritten"


class Commit:
    """The output `target` of one task, for attempt `number`. Methods raise HadoopError."""

    def __init__(self, filesystem: FileSystem, target: str, number: int) -> None:
        self._filesystem = filesystem
        self._target = target
        self._number = number

    def _folder(self, number: int) -> str:
        return f"{self._target}.attempt_{number}"

    def finish_earlier(self, identity: int) -> bool:
        """Put in place what an earlier attempt noted as whole, by its number in HDFS; False when it is not there."""
        if self._filesystem.identity(self._target) == identity:
            return True
        for number in range(1, self._number):
            if self._filesystem.identity(self._folder(number)) == identity:
                self._rename(number, identity)
                return True
        return False

    def begin(self) -> None:
        """Take away what earlier attempts did not finish; JobError when the output exists."""
        check_free(self._filesystem, self._target)
        for number in range(1, self._number):
            self._filesystem.delete(self._folder(number))

    def upload(self, folder: Path) -> int:
        """Copy a folder's files beside the output; the number by which HDFS knows what was made.

        JobError names a file that HDFS cannot have.
        """
        mine = self._folder(self._number)
        self._filesystem.delete(mine)
        upload_folder(self._filesystem, folder, mine)
        identity = self._filesystem.identity(mine)
        if identity is None:
            raise HadoopError(f"{mine} was deleted while it was filled")
        return identity

    def discard(self) -> None:
        """Take away what was uploaded."""
        self._filesystem.delete(self._folder(self._number))

    def commit(self, identity: int) -> None:
        """Put in place what was uploaded; JobError when the output has come to exist since."""
        self._rename(self._number, identity)

    def _rename(self, number: int, identity: int) -> None:
        try:
            self._filesystem.rename(self._folder(number), self._target)
        except HadoopError:
            now = self._filesystem.identity(self._target)
            if now == identity:  # only the answer was lost
                return
            if now is not None:
                raise JobError(
                    f"{self._target} exists already, so what the program left stays in {self._folder(number)}",
                    remedy="move it to where you want it",
                ) from None
            raise


def upload_folder(filesystem: FileSystem, folder: Path, target: str) -> None:
    """Copy a folder's files to a new folder of HDFS; JobError names a file that HDFS cannot have."""
    filesystem.make_folder(target)
    for path, name in _files(folder):
        if path.is_dir():
            filesystem.make_folder(f"{target}/{name}")
        else:
            filesystem.upload(path, f"{target}/{name}")


def check_free(filesystem: FileSystem, target: str) -> None:
    """JobError when an output exists."""
    if filesystem.exists(target):
        raise JobError(f"{target} exists already", remedy=REMEDY)


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Each folder and file below a folder, with its name there; links lead to files within, all else is left out."""
    for where, folders, files in os.walk(folder):
        for name in sorted(folders + files):
            path = Path(where) / name
            inside = path.relative_to(folder).as_posix()
            is_link = path.is_symlink()
            if is_link and not (path.is_file() and path.resolve().is_relative_to(folder.resolve())):
                print(f"{inside} is left out: it is a link that leads to no file of the output", flush=True)
            elif path.is_dir() or path.is_file():
                _check_name(inside)
                yield path, inside
            else:
                print(f"{inside} is left out: it is neither a file nor a folder", flush=True)


def _check_name(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise JobError(f"HDFS cannot have the file {name!r} of the output", remedy="name it in UTF-8") from None
    if ":" in name:
        raise JobError(f"HDFS cannot have the file {name} of the output", remedy="name it without a colon")
