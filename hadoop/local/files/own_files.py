"""Writes files that hold secrets."""

from __future__ import annotations

import os
from pathlib import Path


def write_own(file: Path, content: bytes) -> None:
    """Write a file that nobody else may read, in place of an earlier one."""
    draft = file.with_name(f".{file.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
        handle.write(content)
    draft.replace(file)
