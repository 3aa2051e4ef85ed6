"""Where commands find the service's token."""

from __future__ import annotations

from pathlib import Path

from infosvc.wire.errors import InvalidInput


def token_path(home: Path, token_file: Path | None) -> Path:
    """The token file that was named, or the one under home."""
    return token_file or home / "service" / "token"


def read_token(home: Path, token_file: Path | None) -> str | None:
    """The token, None when nothing lies at the default place; InvalidInput when a named file cannot be read."""
    path = token_path(home, token_file)
    if not token_file and not path.exists():
        return None
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the token file {path} cannot be read ({error})",
            "token_file",
            remedy="`nodewise serve` makes it; name it with --token-file",
        ) from error
