"""Files that stand under their name only when they are whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.errors import JobError


@contextmanager
def open_part(file: Path) -> Iterator[Path]:
    """A file to write into, which becomes `file` at the end; JobError, at once when the place refuses, names it."""
    part = file.with_name(f"{file.name}.part")
    with _name_errors(file):
        _begin(file, part)
        try:
            yield part
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)


def check(file: Path) -> None:
    """JobError when `open_part` would refuse at once."""
    part = file.with_name(f"{file.name}.part")
    with _name_errors(file):
        _begin(file, part)
        part.unlink()


def _begin(file: Path, part: Path) -> None:
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    part.touch()


@contextmanager
def _name_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JobError(f"{file} cannot be written: {error.strerror or error}") from None
