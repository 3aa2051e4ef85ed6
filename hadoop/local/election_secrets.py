"""What two masters show to ZooKeeper, so that nobody else makes one of them active, or reads what YARN keeps there."""

from __future__ import annotations

import base64
import hashlib
import secrets
from pathlib import Path

from hadoop.local.files.own_files import write_own

_USERS = ("hdfs", "yarn")


def prepare(folder: Path) -> None:
    """Make what is missing: the password of each user, and who may touch what that user makes, which is nobody else.

    The names are those of the templates, the forms those of Hadoop's `ha.zookeeper` and `hadoop.zk` settings.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for user in _USERS:
        shown, allowed = folder / f"{user}.auth", folder / f"{user}.acl"
        if not shown.exists() or not allowed.exists():
            password = secrets.token_hex(16)
            write_own(allowed, f"digest:{_name(user, password)}:cdrwa\n".encode())
            write_own(shown, f"digest:{user}:{password}\n".encode())


def _name(user: str, password: str) -> str:
    """As ZooKeeper names whoever has shown a password: by its SHA-1."""
    digest = hashlib.sha1(f"{user}:{password}".encode(), usedforsecurity=False).digest()
    return f"{user}:{base64.b64encode(digest).decode()}"
