"""The token: who may write. Reading needs none."""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from pathlib import Path

from infosvc.errors import InvalidInput, Unauthorized

READING = frozenset({"GET", "HEAD", "OPTIONS"})


def token_from(path: Path) -> str:
    """The token in a file, made with mode 0600 when it is missing; InvalidInput when it cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the token file {path} cannot be used ({error}): mend it, or name another one with --token-file",
            "token_file",
        ) from error
    if mode & 0o077:
        raise InvalidInput(f"the token file {path} can be read by others: chmod 600 {path}", "token_file")
    if not token.isascii() or len(token) < 16 or len(token.split()) != 1:
        raise InvalidInput(
            f"the token file {path} holds no token: one word of at least 16 characters; delete it to get a new one",
            "token_file",
        )
    return token


def check(method: str, header: str | None, token: str) -> None:
    """Raise Unauthorized unless the call only reads or its Authorization header shows the token."""
    if method in READING:
        return
    kind, _, shown = (header or "").partition(" ")
    if kind.lower() != "bearer" or not hmac.compare_digest(shown.strip().encode(), token.encode()):
        said = "shows a token that this service does not know" if header else "shows no token"
        raise Unauthorized(
            f"the call {said}: send `Authorization: Bearer TOKEN` with the content of the service's token file "
            "(--token-file, NODEWISE_TOKEN_FILE)",
            "Authorization",
        )


def _make(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
