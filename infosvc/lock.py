"""One service a database: a second one would overwrite what the first has stored."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

from infosvc.errors import Conflict

# The server keeps the lock of a killed service until it sees that the connection is gone.
_WAIT_SECONDS = 3


def lock_file(database: Path) -> int:
    """Hold `<database>.lock` until the returned descriptor is closed; Conflict when another service holds it."""
    descriptor = os.open(f"{os.path.realpath(database)}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise _conflict(str(database)) from error
    return descriptor


def lock_server(connection: Any, _record: Any = None) -> None:
    """Hold the database's lock for as long as this new connection lives; Conflict when another service holds it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DATABASE(), GET_LOCK(CONCAT('nodewise ', MD5(DATABASE())), %s)", (_WAIT_SECONDS,))
        name, held = cursor.fetchone()
    if held != 1:
        connection.close()
        raise _conflict(name)


def _conflict(name: str) -> Conflict:
    return Conflict(f"another service uses the database {name}: stop it, or name another database with --database")
