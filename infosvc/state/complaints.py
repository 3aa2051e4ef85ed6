"""What a database complains, in words that lead to the remedy."""

from __future__ import annotations

from infosvc.wire.errors import NotReady

RESTORE = "restore a backup as docs/operate.md#back-up-and-restore says, or name another one with --database"

# What is found in the text of a complaint first decides; SQLite says words, MySQL and MariaDB numbers.
_REMEDIES: dict[str, tuple[str, ...]] = {
    RESTORE: (
        "not a database",
        "malformed",
        "no such table",
        "no such column",
        "has no column",
        "(1054,",  # unknown column
        "(1146,",  # no such table
    ),
    "free some space on its disk": ("is full", "(1021,", "(1114,", "No space left"),
    "end the program that holds it": ("is locked",),
    "let this user write its file and folder": ("readonly", "unable to open"),
}
_AWAY = "start it, or name another one with --database"
_NOT_OWNER = "(1095,"  # of the connection that is to end


def not_ready(name: str, cause: object) -> NotReady:
    """The error that tells what the database `name` complained."""
    text = str(cause)
    if _NOT_OWNER in text:
        return NotReady(
            f"the database {name} does not let this service end the connection of the other one, which stands still "
            f"({text})",
            remedy="make one account for both services, as docs/operate.md#two-services says",
        )
    for remedy, signs in _REMEDIES.items():
        if any(sign in text for sign in signs):
            return NotReady(f"the database {name} cannot be used ({text})", remedy=remedy)
    return NotReady(f"the database {name} does not answer ({text})", remedy=_AWAY)


def lacking(name: str, tables: list[str]) -> NotReady:
    """The error for a database that a service has used and that has lost tables since."""
    return NotReady(f"the database {name} lacks {', '.join(tables)}, which a service needs", remedy=RESTORE)
