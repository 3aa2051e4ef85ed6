"""Whether a file holds what its name tells: `sha256-HEX.sqfs`, as environments name their parts.

Another process reads it, so that the mounter answers others meanwhile: a thread would keep it from its namespace.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from boxes.mounts.protocol import DamagedError

_DIGEST = "import hashlib, sys; print(hashlib.file_digest(sys.stdin.buffer, 'sha256').hexdigest())"
_READER = (sys.executable, "-I", "-S", "-c", _DIGEST)
"""OpenSSL takes a tenth of the time of Debian's sha256sum where processors have instructions for it: 0.1 s, not 1.5."""
_NAME = re.compile(r"sha256-([0-9a-f]{64})\.sqfs")
_CACHE = "filecache"
"""The folder in which YARN keeps what it has fetched; it fetches anew what is not there any more."""


def find_path(file: int) -> Path:
    """Where an open file is."""
    return Path(f"/proc/self/fd/{file}").readlink()


def find_sha256(file: int) -> str:
    """The hash that the name of an open file tells, "" for another name."""
    match = _NAME.fullmatch(find_path(file).name)
    return match[1] if match else ""


class Reading:
    """A file that is read to its end.

    told      can be read once that has ended
    waiting   who waits for it, with the descriptors that came with the request
    """

    def __init__(self, file: int) -> None:
        """Begin to read what the descriptor has open; OSError when that cannot be."""
        self._expected = find_sha256(file)
        self._file = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)  # with a position of its own
        try:
            self._process = subprocess.Popen(_READER, stdin=self._file, stdout=subprocess.PIPE, text=True)
        except OSError:
            os.close(self._file)
            raise
        self.told = cast("IO[str]", self._process.stdout)
        self.waiting: dict[socket.socket, list[int]] = {}

    def end(self) -> None:
        """Read no further."""
        self._process.kill()
        self._process.communicate()
        os.close(self._file)

    def judge(self) -> None:
        """DamagedError when it holds something else than its name tells; OSError when it could not be read."""
        try:
            found, _ = self._process.communicate()
            path = find_path(self._file)
            if self._process.returncode:
                raise OSError(errno.EIO, f"{path} cannot be read: its reader ended with {self._process.returncode}")
            if found.split()[0] != self._expected:
                where = "is deleted there" if _delete_cached(path, self._file) else f"stays there as {path}"
                raise DamagedError(errno.EIO, f"{path.name} is damaged on this node, and {where}")
        finally:
            os.close(self._file)


def _delete_cached(path: Path, file: int) -> bool:
    """Take an open file out of YARN's cache, so that YARN fetches it anew; whether it was there and is gone."""
    with suppress(OSError):
        if _CACHE in path.parts and os.path.samestat(path.lstat(), os.fstat(file)):
            path.unlink()
            return True
    return False
