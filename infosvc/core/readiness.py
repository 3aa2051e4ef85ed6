"""Whether the service can store something now, found out at most once a second however many ask."""

from __future__ import annotations

import threading
import time

from infosvc.state.database import Database
from infosvc.state.transaction import Transaction
from infosvc.state.writer import Writer
from infosvc.wire.errors import InfoError

FRESH_SECONDS = 1.0


class Readiness:
    """What became of the last try, which is made anew when it is old."""

    def __init__(self, writer: Writer, store: Database) -> None:
        self._writer = writer
        self._store = store
        self._trying = threading.Lock()
        self._tried = float("-inf")
        self._fault: InfoError | None = None

    def check(self) -> None:
        """Return when the database takes changes, else raise why not."""
        with self._trying:
            if time.monotonic() - self._tried >= FRESH_SECONDS:
                self._fault = self._try()
                self._tried = time.monotonic()
            fault = self._fault
        if fault is not None:
            raise type(fault)(fault.message, fault.field, fault.remedy)

    def _try(self) -> InfoError | None:
        try:
            self._store.check_space()
            self._writer.write(_nothing)
        except InfoError as error:
            return error
        return None


def _nothing(_transaction: Transaction) -> None:
    """A change of nothing but the number of commits: it is stored only when the database takes changes."""
