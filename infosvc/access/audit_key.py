"""The key of the audit log: a file that whoever writes into the database alone does not have."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from pathlib import Path
from typing import NamedTuple

from infosvc.access.audit import BEGINNING
from infosvc.wire.answers import AuditEntry
from infosvc.wire.errors import InvalidInput

FILE = "audit.key"  # beside the token file
NUMBER = "audit_key"
"""Counter in the database that tells the key of whoever opened it last from others."""
_TEXT = re.compile(r"(\d{1,18}) (k?[0-9a-f]{63,64}) ([0-9a-f]{64})\s*")


class AuditKey(NamedTuple):
    """Seals the entries from number `since` on; the entry before that one had the hash `before`."""

    since: int
    before: str
    secret: bytes


def read_key(path: Path) -> AuditKey | None:
    """The key in a file, None when there is no such file; InvalidInput when it cannot be used."""
    try:
        text, mode = path.read_text(), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the key of the audit log, {path}, cannot be read ({error})", "audit_key", remedy="mend it"
        ) from error
    if mode & 0o077:
        raise InvalidInput(f"the audit log's key {path} can be read by others", "audit_key", remedy=f"chmod 600 {path}")
    match = _TEXT.fullmatch(text)
    if not match:
        raise InvalidInput(f"the file {path} holds no key of the audit log", "audit_key", remedy="restore it")
    return AuditKey(int(match[1]), match[2], bytes.fromhex(match[3]))


def refuse_missing(path: Path) -> None:
    """InvalidInput when the file is missing whose key another service of the same database has."""
    if not path.exists():
        raise _refused(f"with a key that is not in {path.parent}", path.parent)


def refuse_other(path: Path, number: int | None) -> None:
    """InvalidInput when the file has another key than the service that stored `number`; None is for none that did."""
    key = read_key(path)
    if key is not None and number not in (None, number_of(key.secret)):
        raise _refused(f"with another key than the one in {path}", path.parent)


def _refused(how: str, folder: Path) -> InvalidInput:
    return InvalidInput(
        f"the audit log of the other service of this database is sealed {how}",
        "audit_key",
        remedy=f"copy audit.key and token from the folder of that service's token file to {folder}",
    )


def number_of(secret: bytes) -> int:
    """What tells a key from others, and tells nobody the key."""
    return int.from_bytes(hmac.digest(secret, b"which key this is", "sha256")[:7], "big")


def key_from(path: Path, newest: AuditEntry | None) -> AuditKey:
    """The key in a file; when it is missing, a new one for what follows the newest entry."""
    key = read_key(path)
    if key is not None:
        return key
    since, before = (newest.sequence + 1, newest.hash) if newest else (1, BEGINNING)
    secret = secrets.token_bytes(32)
    made = path.with_name(f"{path.name}.new")
    try:
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(f"{since} {before} {secret.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except OSError as error:
        raise InvalidInput(
            f"the key of the audit log cannot be made ({error})",
            "audit_key",
            remedy="let the service write into the folder of its token file",
        ) from error
    return AuditKey(since, before, secret)
