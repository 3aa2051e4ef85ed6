"""The SHA-256 of a file, by which environments name it."""

from __future__ import annotations

import hashlib
from pathlib import Path


def hash_file(file: Path) -> str:
    """In hexadecimal digits; OSError when the file cannot be read."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
