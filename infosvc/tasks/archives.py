"""Tar archives of tasks, as files that are named by their SHA-256: written once, checked before they count.

Their folder is its owner's only. What breaks off, or is not what its name says, leaves nothing.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from infosvc.settings import Settings
from infosvc.wire.errors import Conflict, InvalidInput, NotFound, NotReady, TooLarge
from infosvc.wire.task_spec import SHA256

PIECE_BYTES = 256 << 10
DAY = 86_400.0
_BEGUN = ".begun-"  # begins the name of a file that is not whole yet

Sink = Callable[[bytes], None]


class Archives:
    """The archives in one folder, all together bounded; any thread may use it. Without a folder none can be kept."""

    def __init__(self, folder: Path | None, settings: Settings, wall: Callable[[], float]) -> None:
        self._folder = folder
        self._largest = settings.bytes_per_archive
        self._most = settings.bytes_of_archives
        self._days = settings.archive_days
        self._wall = wall
        self._lock = threading.Lock()
        self._bytes = 0
        for file in self._files(_BEGUN):
            with suppress(OSError):
                file.unlink()
        for file in self._files():
            self._bytes += file.stat().st_size

    def size(self, sha256: str) -> int:
        """The bytes of an archive; NotFound when it is not here."""
        with suppress(OSError):
            if self._folder is not None and SHA256.fullmatch(sha256):
                return (self._folder / sha256).stat().st_size
        raise NotFound(
            f"no archive has the SHA-256 {sha256[:80]}", "sha256", remedy="send it with PUT /tasks/files/SHA256"
        )

    def claim(self, sha256: str) -> None:
        """Keep an archive for some days more; InvalidInput when it is not here, for tasks that name it."""
        try:
            self.size(sha256)
            self._touch(sha256)
        except (NotFound, OSError) as error:
            raise InvalidInput(
                f"no archive has the SHA-256 {sha256}", "files", remedy="send it first with PUT /tasks/files/SHA256"
            ) from error

    def path(self, sha256: str) -> Path:
        """The file of an archive; NotFound when it is not here."""
        self.size(sha256)
        return self._there() / sha256

    def check_length(self, length: int) -> None:
        """TooLarge for an archive of so many bytes."""
        if length > self._largest:
            raise TooLarge(
                f"the archive has {length} bytes, and may have {self._largest}",
                remedy="put large data into HDFS, and name it to the task",
            )

    def keep(self, sha256: str, length: int, bring: Callable[[Sink], None]) -> bool:
        """Write the archive of so many bytes whose pieces `bring` hands to what it is given; whether it is new.

        InvalidInput when its SHA-256 is another one, TooLarge or Conflict when it has no room, NotReady when it cannot
        be written; and whatever `bring` raises.
        """
        if not SHA256.fullmatch(sha256):
            raise InvalidInput(f"{sha256[:80]!r} is not a SHA-256", "sha256", remedy="give 64 hexadecimal digits")
        self.check_length(length)
        self._reserve(length)
        is_new = False
        try:
            is_new = self._write(sha256, bring)
        except OSError as error:
            raise NotReady(f"the archive cannot be written ({error.strerror})", remedy="try again later") from error
        finally:
            if not is_new:
                self._release(length)
        return is_new

    def remove_unused(self, named: Collection[str]) -> None:
        """Remove the archives that no task has named for some days; those in `named` are."""
        old = self._wall() - self._days * DAY
        for file in self._files():
            with suppress(OSError):
                if file.name in named:
                    self._touch(file.name)
                elif file.stat().st_mtime < old:
                    size = file.stat().st_size
                    file.unlink()
                    self._release(size)

    def _write(self, sha256: str, bring: Callable[[Sink], None]) -> bool:
        folder = self._there()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        begun, found = folder / f"{_BEGUN}{secrets.token_hex(8)}", hashlib.sha256()
        try:
            with os.fdopen(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:

                def take(piece: bytes) -> None:
                    file.write(piece)
                    found.update(piece)

                bring(take)
                file.flush()
                os.fsync(file.fileno())
            if found.hexdigest() != sha256:
                raise InvalidInput(
                    f"the archive has the SHA-256 {found.hexdigest()}", "sha256", remedy="send it under its own"
                )
            return self._put_in_place(begun, sha256)
        finally:
            begun.unlink(missing_ok=True)

    def _put_in_place(self, begun: Path, sha256: str) -> bool:
        """Whether there was none before."""
        try:
            os.link(begun, self._there() / sha256)
            is_new = True
        except FileExistsError:
            is_new = False
        self._touch(sha256)
        folder = os.open(self._there(), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return is_new

    def _touch(self, sha256: str) -> None:
        now = self._wall()
        os.utime(self._there() / sha256, (now, now))

    def _files(self, beginning: str = "") -> list[Path]:
        """The archives, or the files whose names begin like this."""
        if self._folder is None or not self._folder.is_dir():
            return []
        return [
            file
            for file in self._folder.iterdir()
            if (file.name.startswith(beginning) if beginning else SHA256.fullmatch(file.name))
        ]

    def _there(self) -> Path:
        if self._folder is None:
            raise NotReady("this service keeps no archives of tasks", remedy="name a folder for them in its settings")
        return self._folder

    def _reserve(self, length: int) -> None:
        with self._lock:
            if self._bytes + length > self._most:
                raise Conflict(
                    f"the archives of tasks have {self._bytes} bytes, and may have {self._most}",
                    remedy="remove tasks that have ended with `nodewise task rm`; their archives go after some days",
                )
            self._bytes += length

    def _release(self, length: int) -> None:
        with self._lock:
            self._bytes -= length
