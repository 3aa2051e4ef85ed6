"""Locks that all processes of a machine share, whoever's they are: empty files in one folder, locked by flock.

The kernel gives a lock back when its holder ends, however it ends. No child of the holder gets it. The files stay: who
took one away would let two hold what it stands for. Who may write into the folder can hold a lock for ever, as they
could use what it stands for; they cannot have a link followed, and a file that was exchanged is noticed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from boxes.box import BoxError

FOLDER = Path("/run/lock")
"""Debian's, in which everybody may make files and only their owners delete them; it is empty after a boot."""
VARIABLE = "NODEWISE_GPU_LOCKS"
"""Environment variable with another folder, the same for all who run programs on a machine."""
POLL_SECONDS = 0.05
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o644


class Locks:
    """The locks of one folder, by name; BoxError says why it cannot be used."""

    def __init__(self, folder: Path) -> None:
        self._path = folder
        try:
            self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise _refusal(folder, f"is not a folder that this user may open: {error.strerror}") from error
        mode = os.fstat(self._folder).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            self.close()
            raise _refusal(folder, "lets everybody delete the files of others")

    def close(self) -> None:
        """Use the folder no more; locks that are held stay so."""
        os.close(self._folder)

    def try_to_lock(self, name: str) -> int | None:
        """Hold a lock until the file descriptor is closed; None when somebody holds it."""
        while True:
            handle = self._open(name)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_there(handle, name):
                    return handle
            except BlockingIOError:
                os.close(handle)
                return None
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)  # it was taken away, or exchanged, since it was opened

    @contextmanager
    def hold(self, name: str, pause: Callable[[float], None]) -> Iterator[None]:
        """Hold a lock while the block runs; until it can be had, `pause` waits so many seconds, or raises."""
        while (handle := self.try_to_lock(name)) is None:
            pause(POLL_SECONDS)
        try:
            yield
        finally:
            os.close(handle)

    def _open(self, name: str) -> int:
        while True:
            try:
                handle = os.open(name, _READ, dir_fd=self._folder)
            except FileNotFoundError:
                self._make(name)
                continue
            except OSError as error:
                why = "is a link" if error.errno == errno.ELOOP else f"cannot be opened: {error.strerror}"
                raise _refusal(self._path / name, why) from error
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return handle
            os.close(handle)
            raise _refusal(self._path / name, "is not a file")

    def _make(self, name: str) -> None:
        """Make the file, unless somebody does so meanwhile; with its name it gets what lets everybody open it."""
        draft = f".{name}.{secrets.token_hex(8)}"
        try:
            handle = os.open(draft, _READ | os.O_CREAT | os.O_EXCL, _MODE, dir_fd=self._folder)
        except OSError as error:
            raise _refusal(self._path, f"takes no file of this user: {error.strerror}") from error
        try:
            os.fchmod(handle, _MODE)  # whatever the umask
            with suppress(FileExistsError):
                os.link(draft, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        finally:
            os.close(handle)
            os.unlink(draft, dir_fd=self._folder)

    def _is_there(self, handle: int, name: str) -> bool:
        """Whether an open file is the one that others find by its name."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(handle), os.stat(name, dir_fd=self._folder, follow_symlinks=False))
        return False


def _refusal(path: Path, why: str) -> BoxError:
    return BoxError(f"{path} {why}", remedy=f"the locks of GPUs need a folder like /run/lock; {VARIABLE} names another")
