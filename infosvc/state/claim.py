"""Which of two services on one database server may write: three numbers in t_Meta tell.

`epoch` is raised by each service that opens the database. Every commit of a service looks whether it is still its own,
so what a service wants to store that stood still while another one took over is refused. `claim_until` is until when a
service has the database that shares it, in microseconds by the server's clock; 0 means as long as its connection lives.
`claim_connection` is the server's number of that connection, which holds the lock of the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, select, text
from sqlalchemy.dialects.mysql import insert
from sqlalchemy.exc import ProgrammingError, SQLAlchemyError

from infosvc.state import complaints, tables
from infosvc.state.opening import Opening
from infosvc.state.single_instance import LOCK_NAME, InUse
from infosvc.wire.errors import NotReady

CLAIM_SECONDS = 2.5  # after the last renewal another service may take the database
RENEW_SECONDS = 0.5
LOOK_SECONDS = 0.25  # between two looks of a service that waits for its turn

_EPOCH, _UNTIL, _CONNECTION = "epoch", "claim_until", "claim_connection"
_UNLIMITED, _GIVEN_BACK = 0, 1
_LASTING = int(CLAIM_SECONDS * 1_000_000)  # microseconds
_TAKEN = "another service has taken the database over"
# No function of MariaDB tells Unix seconds with their fraction whatever the time zone of the session is.
_NOW = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
# One statement, which the server ends by itself: who stood still within a transaction would hold the row of the epoch.
# The epoch is looked at first, as whoever opens the database does. Once that one has the lock, nothing is renewed.
_RENEW = f"""
UPDATE t_Meta AS own STRAIGHT_JOIN t_Meta AS told
SET told.value = CASE told.name WHEN '{_CONNECTION}' THEN :holder ELSE COALESCE(:until, {_NOW} + :lasting) END
WHERE own.name = '{_EPOCH}' AND own.value = :epoch AND told.name IN ('{_UNTIL}', '{_CONNECTION}')
  AND COALESCE(IS_USED_LOCK({LOCK_NAME}), :holder) = :holder
"""  # noqa: S608 - names of ours
_PATIENCE = {"connect_timeout": 2, "read_timeout": 2, "write_timeout": 2}  # seconds
_meta = tables.meta.c
_log = logging.getLogger(__name__)


class Superseded(NotReady):
    """Another service has taken the database over."""


class Fence:
    """What keeps a service from writing once another one has opened its database."""

    def __init__(self) -> None:
        self.epoch: int | None = None

    def open(self, connection: Connection, holder: int | None, is_shared: bool) -> None:
        """Begin an epoch, from which on no other service can commit; `holder` is the connection that has the lock.

        InUse when another service has a claim, which may be if this one stood still after it got the lock.
        """
        one_more = insert(tables.meta).values(name=_EPOCH, value=1)
        connection.execute(one_more.on_duplicate_key_update(value=_meta.value + 1))
        if is_shared:
            refuse_claimed(connection)  # nobody renews a claim now, since that looks at the epoch first
        self.epoch = connection.scalar(select(_meta.value).where(_meta.name == _EPOCH))
        until = _until(connection) if is_shared else _UNLIMITED
        for name, number in ((_UNTIL, until), (_CONNECTION, holder or 0)):
            row = insert(tables.meta).values(name=name, value=number)
            connection.execute(row.on_duplicate_key_update(value=number))

    def check(self, connection: Connection) -> None:
        """Superseded unless this epoch lasts; if it does, it lasts until the transaction of `connection` has ended."""
        found = connection.scalar(select(_meta.value).where(_meta.name == _EPOCH).with_for_update(read=True))
        self._compare(found)

    def check_cursor(self, cursor: Any) -> None:
        """Superseded unless this epoch lasts now, asked with a cursor of the driver's own."""
        cursor.execute("SELECT value FROM t_Meta WHERE name = %s", (_EPOCH,))
        self._compare((cursor.fetchone() or [None])[0])

    def _compare(self, found: int | None) -> None:
        if found != self.epoch:
            raise Superseded(_TAKEN, remedy="call that one")


def refuse_claimed(connection: Connection) -> None:
    """InUse when another service has renewed its claim since this one looked, before this one had the lock."""
    until = _numbers(connection, waits=True).get(_UNTIL, _UNLIMITED)
    if until != _UNLIMITED and until >= _now(connection):
        raise InUse("another service still has its claim on the database", remedy="wait until that has ended")


class Claim:
    """A shared database that this service has for some seconds, renewed in a thread until it is closed or lost."""

    def __init__(self, url: URL, fence: Fence, holder: Callable[[], int | None], began: float) -> None:
        """`began` is a moment before the fence was opened, in monotonic seconds."""
        self.is_lost = False
        self._engine = _engine(url)
        self._fence = fence
        self._holder = holder
        self._opening = Opening()
        self._sure_until = began + CLAIM_SECONDS
        self._when_lost: Callable[[], None] = lambda: None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="claim", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """NotReady when another service may have the database by now, so that what is in memory may be old."""
        if time.monotonic() > self._sure_until:
            raise NotReady(
                "this service does not know whether it still has the database that it shares",
                remedy="try again, or call the other service",
            )

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Call `tell` as soon as another service has the database, at once if it has."""
        self._when_lost = tell
        if self.is_lost:
            tell()

    def close(self) -> None:
        """Renew no more, and let another service take the database at once."""
        self._closing.set()
        self._thread.join()
        if not self.is_lost:
            try:
                self._store(_GIVEN_BACK)
            except (NotReady, SQLAlchemyError) as error:
                _log.warning("the claim on the database ends by itself, since it cannot be given back: %s", error)
        self._engine.dispose()

    def _run(self) -> None:
        while not self._closing.wait(RENEW_SECONDS):
            began = time.monotonic()
            try:
                self._store()
            except Superseded as error:
                _log.error("%s", error.message)
                self._sure_until, self.is_lost = float("-inf"), True
                self._when_lost()
                return
            except (NotReady, SQLAlchemyError):  # who writes is told; readers are, when this lasts
                continue
            self._sure_until = began + CLAIM_SECONDS

    def _store(self, until: int | None = None) -> None:
        numbers = {"until": until, "lasting": _LASTING, "holder": self._holder() or 0, "epoch": self._fence.epoch}
        with self._engine.connect() as connection:
            if not connection.execute(text(_RENEW), numbers).rowcount:
                self._fence.check(connection)
                if (opener := _find_holder(connection)) is not None:
                    self._opening.look(connection, opener)
                raise NotReady("another service is opening the database", remedy="try again later")


class Turn:
    """The look of a service that waits for its turn at a database that another one has."""

    def __init__(self, url: URL) -> None:
        self._engine = _engine(url)
        self._name = url.render_as_string(hide_password=True)
        self._remedy: str | None = None  # of what was complained last
        self._opening = Opening()

    def has_come(self) -> bool:
        """Whether the database may be opened now; False as long as the server does not answer or refuses, which is
        logged once.

        The connection of a service whose claim has ended is ended as well, with what it had not committed; so is that
        of one that stands still while it opens the database.
        """
        try:
            with self._engine.connect() as connection:
                has_come = self._look(connection)
        except SQLAlchemyError as error:
            complaint = complaints.not_ready(self._name, getattr(error, "orig", None) or error)
            if complaint.remedy != self._remedy:
                _log.warning("%s", complaint)
            self._remedy = complaint.remedy
            return False
        self._remedy = None
        return has_come

    def stored(self, name: str) -> int | None:
        """A number that the active service has stored; None without it, or while the server does not answer."""
        try:
            with self._engine.connect() as connection:
                found: int | None = connection.scalar(select(_meta.value).where(_meta.name == name))
                return found
        except SQLAlchemyError:
            return None

    def close(self) -> None:
        """Look no more."""
        self._engine.dispose()

    def _look(self, connection: Connection) -> bool:
        said = _numbers(connection)
        holder = _find_holder(connection)
        until = said.get(_UNTIL, _UNLIMITED)
        has_ended = until != _UNLIMITED and until < _now(connection)
        if holder is None:
            return has_ended or until == _UNLIMITED
        if has_ended and holder == said.get(_CONNECTION):
            connection.execute(text(f"KILL {int(holder)}"))
        elif has_ended:  # another service is just opening the database
            self._opening.look(connection, holder)
        return False


def _engine(url: URL) -> Engine:
    options: dict[str, Any] = {"pool_size": 1, "max_overflow": 0, "pool_pre_ping": True, "connect_args": _PATIENCE}
    return create_engine(url, isolation_level="AUTOCOMMIT", **options)


def _find_holder(connection: Connection) -> int | None:
    """The server's number of the connection that has the lock of the database."""
    found = connection.scalar(text(f"SELECT IS_USED_LOCK({LOCK_NAME})"))
    return None if found is None else int(found)


def _now(connection: Connection) -> int:
    return int(connection.scalar(text(f"SELECT {_NOW}")))


def _until(connection: Connection) -> int:
    return _now(connection) + _LASTING


def _numbers(connection: Connection, waits: bool = False) -> Mapping[str, int]:
    """What is stored, nothing when no service has opened this database yet; `waits` for a renewal that is under way."""
    try:
        wanted = select(_meta.name, _meta.value).where(_meta.name.in_((_UNTIL, _CONNECTION)))
        rows = connection.execute(wanted.with_for_update(read=True) if waits else wanted)
        return {row.name: row.value for row in rows}
    except ProgrammingError:
        return {}
