"""Copies of program files that nobody can change any more, so that what was hashed is what runs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

COPY_LIMIT = 64 * 1024 * 1024  # bytes: copies live in memory
KEPT_COPIES = 128
KEPT_BYTES = 2 * COPY_LIMIT  # of all copies: a program is at most two
_CHUNK = 256 * 1024
_MFD_EXEC = 0x10
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE

_Identity = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Copy:
    """A sealed copy in memory: its descriptor, the real path of the file it was made from, and the SHA-256 of it."""

    descriptor: int
    file: str
    sha256: str
    executable: bool
    size: int

    @property
    def path(self) -> str:
        """How a process that inherits the descriptor names the copy."""
        return f"/proc/self/fd/{self.descriptor}"


class Copies:
    """The copies of one agent, by path; a file that stayed the same costs one stat."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[_Identity, Copy]] = OrderedDict()

    def get(self, path: str, check: Callable[[int], None] | None = None, follow: bool = True) -> Copy:
        """The copy of a file as it is now; OSError when it cannot be read.

        `check` is called with the open descriptor before anything is read, and may raise. With `follow` off, a
        symbolic link is an OSError.
        """
        identity = _identity(Path(path).stat(follow_symlinks=follow))
        if path in self._kept and self._kept[path][0] == identity:
            self._kept.move_to_end(path)
            return self._kept[path][1]
        self._forget(path)
        self._make_room(identity[-1])
        self._kept[path] = _copy(path, check, follow)
        return self._kept[path][1]

    def close(self) -> None:
        """Give all copies back."""
        for path in list(self._kept):
            self._forget(path)

    def _make_room(self, size: int) -> None:
        """The copies used longest ago go; the one used last stays, as it may belong to the same program."""
        while len(self._kept) > 1 and (
            len(self._kept) >= KEPT_COPIES or sum(copy.size for _, copy in self._kept.values()) + size > KEPT_BYTES
        ):
            self._forget(next(iter(self._kept)))

    def _forget(self, path: str) -> None:
        if path in self._kept:
            os.close(self._kept.pop(path)[1].descriptor)


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size


def _copy(path: str, check: Callable[[int], None] | None, follow: bool) -> tuple[_Identity, Copy]:
    # Without O_NONBLOCK, opening a pipe that somebody put there would hang the agent.
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is not a file")
        if status.st_size > COPY_LIMIT:
            raise OSError(0, f"it has more than {COPY_LIMIT} bytes: start it from a script")
        if check is not None:
            check(source)
        copy, digest, size = _seal(source)
        file = str(Path(f"/proc/self/fd/{source}").readlink())
        return _identity(status), Copy(copy, file, digest, bool(status.st_mode & 0o111), size)
    finally:
        os.close(source)


def _seal(source: int) -> tuple[int, str, int]:
    digest, size = hashlib.sha256(), 0
    copy = _memory_file()
    try:
        while chunk := os.read(source, _CHUNK):
            size += len(chunk)
            if size > COPY_LIMIT:
                raise OSError(0, "it grew while it was read")
            digest.update(chunk)
            _write_all(copy, chunk)
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(copy)
        raise
    return copy, digest.hexdigest(), size


def _memory_file() -> int:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        # Where vm.memfd_noexec is 1, only what asks for it can be executed.
        return os.memfd_create("program", flags | _MFD_EXEC)
    except OSError:  # a kernel before 6.3 does not know the word, and needs none
        return os.memfd_create("program", flags)


def _write_all(descriptor: int, chunk: bytes) -> None:
    while chunk:
        chunk = chunk[os.write(descriptor, chunk) :]
