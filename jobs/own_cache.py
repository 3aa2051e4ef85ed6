"""What a user keeps on this machine to be quicker the next time; nothing depends on its being there."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

MOST_KEPT = 4
"""Files of one kind, unless another number is told."""
BEGUN_SECONDS = 3600.0
"""What somebody began to write so long ago was left."""


def find_folder() -> Path | None:
    """Where files are kept, which nobody but root and this user may change; None where there is no such place.

    It is `nodewise` in the folder that XDG_CACHE_HOME names, else in ~/.cache.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = (Path(named) if named.startswith("/") else Path("~/.cache").expanduser()) / "nodewise"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _is_own(folder.lstat()) and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # there is something else, or this user has no home
        return None


def load(name: str) -> bytes | None:
    """The content of a file, unless it is not there or others may have written it."""
    folder = find_folder()
    if folder is None:
        return None
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            return file.read() if stat.S_ISREG(found.st_mode) and _is_own(found) else None
    except OSError:
        return None


def keep(name: str, content: bytes, most: int = MOST_KEPT) -> None:
    """Put a file KIND-NAME there, whole or not at all, and let go of all but the newest `most` of its kind.

    Where that cannot be done, nothing is kept.
    """
    with suppress(OSError):
        if folder := find_folder():
            _write(folder / name, content)
            _remove_older(folder, name.partition("-")[0], most)


def _write(file: Path, content: bytes) -> None:
    with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}-", delete=False) as begun:
        try:
            begun.write(content)
            begun.flush()
            os.fsync(begun.fileno())
            Path(begun.name).replace(file)
        except BaseException:
            Path(begun.name).unlink(missing_ok=True)
            raise


def _remove_older(folder: Path, kind: str, most: int) -> None:
    """Others may do so at the same time."""
    ages = {one: time.time() - one.lstat().st_mtime for one in folder.glob(f"*{kind}-*")}
    whole = sorted((one for one in ages if one.name.startswith(f"{kind}-")), key=lambda one: ages[one])
    left = (one for one in ages if one.name.startswith(f".{kind}-") and ages[one] > BEGUN_SECONDS)
    for one in (*whole[most:], *left):
        one.unlink(missing_ok=True)


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid in (0, os.getuid()) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
