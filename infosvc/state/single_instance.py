"""One service a database: a second one would overwrite what the first has stored."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infosvc.wire.errors import Conflict, NotReady


class InUse(Conflict):
    """Another service uses the database."""


# The server keeps the lock of a killed service until it sees that the connection is gone.
_WAIT_SECONDS = 3
LOCK_NAME = "CONCAT('nodewise ', MD5(DATABASE()))"


def lock_file(database: Path) -> int:
    """Hold `<database>.lock` until the returned descriptor is closed; Conflict when another service holds it."""
    descriptor = os.open(f"{os.path.realpath(database)}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise _conflict(str(database)) from error
    return descriptor


class ServerLock:
    """The lock of one service on a database server; called with each new connection of its writer.

    `holder` is the server's number of the connection that holds it; `check` raises when it may not be had any more.
    """

    def __init__(self) -> None:
        self.holder: int | None = None
        self.check: Callable[[Any], None] = lambda _cursor: None

    def __call__(self, connection: Any, _record: Any = None) -> None:
        """Hold the lock for as long as this connection lives; InUse when another service holds it.

        NotReady when this one had it before: callers are told to come again, as the other one is about to answer.
        """
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT DATABASE(), {LOCK_NAME}")
            database, name = cursor.fetchone()
            self.check(cursor)
            if not self._take(cursor, name):
                raise _conflict(database) if self.holder is None else _lost(database)
            self.holder = connection.thread_id()

    def _take(self, cursor: Any, name: str) -> bool:
        cursor.execute("SELECT GET_LOCK(%s, %s)", (name, _WAIT_SECONDS))
        if cursor.fetchone()[0] == 1:
            return True
        # A connection of ours that broke on the way lives on at the server's end, with the lock.
        cursor.execute("SELECT IS_USED_LOCK(%s)", (name,))
        holder = cursor.fetchone()[0]
        if holder is None or holder != self.holder:
            return False
        cursor.execute("KILL %s", (holder,))
        cursor.execute("SELECT GET_LOCK(%s, %s)", (name, _WAIT_SECONDS))
        return bool(cursor.fetchone()[0] == 1)


def _conflict(name: str) -> InUse:
    return InUse(
        f"another service uses the database {name}", remedy="stop it, or name another database with --database"
    )


def _lost(name: str) -> NotReady:
    return NotReady(f"another service has the lock of the database {name} by now", remedy="call that one")
