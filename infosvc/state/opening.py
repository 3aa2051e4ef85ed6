"""A service that stands still while it opens a database: it has the lock, and has not told its claim yet.

Who waits for the database cannot tell by its claim that it has ended, so one looks whether anything is done there.
"""

from __future__ import annotations

import logging
import time

from sqlalchemy import Connection, text

SILENT_SECONDS = 5.0
"""An opener may be so long between two statements."""

# An opener brings the tables up to date on a second connection, which may take long. Who waits for a lock does nothing.
_BUSY = """
SELECT COUNT(*) FROM information_schema.PROCESSLIST
WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND COMMAND <> 'Sleep' AND COALESCE(STATE, '') <> 'User lock'
"""
_log = logging.getLogger(__name__)


class Opening:
    """What one who waits has seen of the opener; its connection is ended once it has stood still for SILENT_SECONDS.

    Nothing is lost by that: what it has not committed is undone, and it finds when it goes on that it lacks the lock.
    """

    def __init__(self) -> None:
        self._holder: int | None = None
        self._since = 0.0

    def look(self, connection: Connection, holder: int) -> None:
        """Look at the opener whose connection with the lock has the number `holder`, and end that if it is time."""
        now = time.monotonic()
        if holder != self._holder or connection.scalar(text(_BUSY)):
            self._holder, self._since = holder, now
        elif now - self._since > SILENT_SECONDS:
            connection.execute(text(f"KILL {int(holder)}"))
            self._holder = None
            _log.warning("a service stood still while it opened the database; its connection is ended")
