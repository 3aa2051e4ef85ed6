"""Folders as squashfs files: compressed, read-only, mounted instead of unpacked, the same bytes each time."""

from __future__ import annotations

import os
from pathlib import Path

from environments.errors import EnvError
from environments.tools import call

OPTIONS = ("-comp", "zstd", "-Xcompression-level", "3", "-b", "128K")
"""Level 15 takes a hundred times as long, for a file that is a sixth smaller."""
TIMELESS = ("-all-root", "-mkfs-time", "0", "-all-time", "0")
READABLE = ("-action", "chmod(go-w,a+rX)@true")
"""By everybody, and the same whatever umask the maker has: files are root's, and programs are not."""


def compile_all(folder: Path, at: str, python: str) -> None:
    """Compile modules so that Python takes them whatever time files have; `at` is where the environment has the folder.

    Otherwise Python would compile all sources at each start, as their times are those of no compiled file.
    """
    mode = ["--invalidation-mode", "unchecked-hash", "-f", "-q", "-j", "0"]
    call(
        [python, "-I", "-m", "compileall", *mode, "-s", str(folder), "-p", at, str(folder)],
        "modules cannot be compiled",
        accepted=(0, 1),
    )


def squash(folder: Path, target: Path) -> None:
    """Write a new file; EnvError for what a box may not be given."""
    _refuse_special(folder)
    target.unlink(missing_ok=True)
    how = [*OPTIONS, *TIMELESS, *READABLE, "-noappend", "-no-progress", "-quiet"]
    call(["mksquashfs", folder, target, *how], "the files cannot be compressed")


def unsquash(file: Path, folder: Path) -> None:
    """Make a folder of what a squashfs file holds; EnvError when it cannot be read."""
    call(["unsquashfs", "-no-xattrs", "-no-progress", "-quiet", "-d", folder, file], f"{file} cannot be unpacked")


def _refuse_special(folder: Path) -> None:
    """A box runs what is in it as its user, and sees nothing else."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_symlink():
            if path.readlink().is_absolute():
                continue  # it is followed in the box, below its root
            if not Path(os.path.normpath(path.parent / path.readlink())).is_relative_to(folder):
                raise EnvError(f"{name} leads out of the environment", remedy="leave it out")
        elif path.stat().st_mode & 0o6000:
            raise EnvError(f"{name} has a setuid or setgid bit", remedy="take it away with chmod ug-s")
        elif not (path.is_file() or path.is_dir()):
            raise EnvError(f"{name} is not a file, folder or link", remedy="leave it out")
