"""One squashfs file that the mounter has mounted, who uses it, and since when nobody does."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

from boxes.mounts.content import find_path
from boxes.mounts.kernel import Apart

_SQUASHFUSE = "/usr/bin/squashfuse_ll"
_SECONDS = 4.0

Identity = tuple[int, int, int, int]


def identity(file: int) -> Identity:
    """What tells an open file from all others of this machine; OSError when it is a folder or a device."""
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "this is not a file")
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class Mount:
    """Mounted from the first moment until `end`.

    title    what the file was called, for people
    alive    a descriptor that can be read once nothing serves the mount any more
    """

    def __init__(self, apart: Apart, name: str, file: int, now: float) -> None:
        """Mount what the descriptor `file` has open, which becomes the mount's own unless that fails: OSError."""
        self._apart, self._name, self._file = apart, name, file
        self.title = find_path(file).name
        self._users: dict[int, int] = {}
        self._used_last = now
        fuse = apart.mount(name)
        try:
            self.alive = _serve(file, fuse)
        except OSError:
            apart.unmount(name)
            raise
        finally:
            os.close(fuse)

    def copy(self) -> int:
        """A descriptor of a copy for one user, who should be added then."""
        return self._apart.copy(self._name)

    def add(self, pid: int, process: int) -> int | None:
        """Count a process with this id and pidfd, which becomes the mount's; the pidfd that it replaces, if any."""
        before = self._users.get(pid)
        self._users[pid] = process
        return before

    def remove(self, process: int, now: float) -> None:
        """Count a process no longer, told by its pidfd."""
        self._users = {pid: one for pid, one in self._users.items() if one != process}
        self._used_last = now

    @property
    def users(self) -> list[int]:
        """The pidfds of the processes that use it."""
        return list(self._users.values())

    def idle_seconds(self, now: float) -> float:
        """How long nobody has used it; for ever if its file is removed, whose room would stay taken."""
        if self._users:
            return 0.0
        return now - self._used_last if os.fstat(self._file).st_nlink else float("inf")

    def end(self) -> None:
        """Unmount it, but for the copies."""
        with suppress(OSError):
            self._apart.unmount(self._name)
        for descriptor in (self._file, self.alive, *self.users):
            os.close(descriptor)


def _serve(file: int, fuse: int) -> int:
    """Start what serves the files of a mount; a descriptor that ends with it. OSError when the file is no squashfs."""
    alive, held = os.pipe()
    try:
        done = subprocess.run(
            [_SQUASHFUSE, f"/proc/self/fd/{file}", f"/dev/fd/{fuse}"],
            pass_fds=(file, fuse, held),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise OSError(errno.EIO, said or f"squashfuse ended with exit code {done.returncode}")
    except BaseException as error:
        os.close(alive)
        if isinstance(error, subprocess.TimeoutExpired):
            raise OSError(errno.ETIMEDOUT, f"squashfuse has not begun within {_SECONDS:.0f} s") from error
        raise
    finally:
        os.close(held)
    return alive


def pid_of(process: int) -> int:
    """The process id that a pidfd stands for; OSError when it is no pidfd, or the process has ended."""
    lines = Path(f"/proc/self/fdinfo/{process}").read_text().splitlines()
    pid = int(dict(line.split(":", 1) for line in lines).get("Pid", "-1"))
    if pid <= 0:
        raise OSError(errno.ESRCH, "there is no such process in this namespace")
    return pid
