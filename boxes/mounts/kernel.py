"""A namespace of mounts that only this process can step into: calls of Linux for which Python has no names."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _RECURSIVE, _SLAVE = 1, 2, 4, 1 << 14, 1 << 19
_DETACH = 2
_OPEN_TREE = 428
"""The number of open_tree, which Linux has since 5.2; it is the same on every architecture."""
_CLONE, _CLOSE_ON_EXEC = 1, os.O_CLOEXEC
_AT_CWD = -100


class Apart:
    """Holds mounts apart from all processes, this one included, except for the moments in which it steps in.

    What this process starts has none of them. They are gone when it is, whatever ended it, but for copies of them.
    """

    def __init__(self, folder: Path) -> None:
        """Leave the user namespace for one in which this process may mount; in `folder` it will mount.

        OSError when this machine does not allow that.
        """
        self._folder = folder
        try:
            self._leave()
        except OSError as error:
            raise OSError(error.errno, f"its user may not mount in a namespace of its own: {error}") from error

    def _leave(self) -> None:
        user, group = os.getuid(), os.getgid()
        _check(_LIBC.unshare(_NEW_USER | _NEW_MOUNTS), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        self._usual = _open_own_namespace()
        _check(_LIBC.unshare(_NEW_MOUNTS), "unshare")
        _mount("none", "/", "", _RECURSIVE | _SLAVE, "")
        _mount("mounts", str(self._folder), "tmpfs", _NO_SETUID | _NO_DEVICES, "size=1m,mode=0700")
        self._apart = _open_own_namespace()
        _enter(self._usual)

    def mount(self, name: str) -> int:
        """A new mount, and the descriptor by which its files have to be served."""
        fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        try:
            with self._inside():
                (self._folder / name).mkdir()
                self._mount_fuse(self._folder / name, fuse)
        except BaseException:
            os.close(fuse)
            raise
        return fuse

    def _mount_fuse(self, place: Path, fuse: int) -> None:
        flags, own = _READ_ONLY | _NO_SETUID | _NO_DEVICES, "rootmode=40000,user_id=0,group_id=0"
        try:
            _mount("squashfuse", str(place), "fuse.squashfuse", flags, f"fd={fuse},{own}")
        except OSError:
            place.rmdir()
            raise

    def copy(self, name: str) -> int:
        """A descriptor with a copy of the mount, which can be moved to a folder of any namespace."""
        with self._inside():
            place = os.fsencode(self._folder / name)
            return _check(_LIBC.syscall(_OPEN_TREE, _AT_CWD, place, _CLONE | _CLOSE_ON_EXEC), "open_tree")

    def unmount(self, name: str) -> None:
        """Let it go; copies of it stay."""
        with self._inside():
            _LIBC.umount2(os.fsencode(self._folder / name), _DETACH)
            (self._folder / name).rmdir()

    @contextmanager
    def _inside(self) -> Iterator[None]:
        _enter(self._apart)
        try:
            yield
        finally:
            try:
                _enter(self._usual)
            except OSError:
                os._exit(1)  # whatever it starts from here would hold its own mount for ever


def _open_own_namespace() -> int:
    return os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def _enter(namespace: int) -> None:
    _check(_LIBC.setns(namespace, _NEW_MOUNTS), "setns")


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = [os.fsencode(word) for word in (source, target, kind)]
    _check(_LIBC.mount(*words, ctypes.c_ulong(flags), os.fsencode(options)), "mount")


def _check(answer: int, call: str) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), call)
    return answer
