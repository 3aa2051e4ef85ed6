"""Every SQL statement: opens the database, loads the configuration once, and stores what a transaction changed."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    CursorResult,
    Engine,
    Select,
    Table,
    create_engine,
    delete,
    event,
    insert,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool

from infosvc.settings import Clock
from infosvc.state import bulk_insert, complaints, forgetting, row_mapping, tables
from infosvc.state.claim import Claim, Fence, refuse_claimed
from infosvc.state.configuration import Configuration
from infosvc.state.current_values import Cell, CurrentValues
from infosvc.state.forgetting import Rest
from infosvc.state.migrate import migrate
from infosvc.state.single_instance import ServerLock, lock_file
from infosvc.state.tracked import MetricPoint
from infosvc.state.transaction import Transaction
from infosvc.state.value import Value
from infosvc.wire.answers import AuditEntry
from infosvc.wire.errors import InvalidInput, NotReady

Row = dict[str, Any]
T = TypeVar("T")

_LEAST_FREE = 256 << 10  # bytes of a disk that is not called full
_POOL_SECONDS = 5
_ROW_BYTES = 30  # of an answer, beside its texts
_MOST_PARAMETERS = 500  # of one statement

_CONNECT: dict[str, Row] = {
    "sqlite": {"timeout": 5.0},
    "mysql": {"connect_timeout": 3, "read_timeout": 5, "write_timeout": 5},
}


class Most(NamedTuple):
    """How much of a long table one answer brings at most."""

    rows: int
    bytes: int


def parse_url(text: str, password: str | None = None) -> URL:
    """A database URL, its password from elsewhere if given; InvalidInput tells the two forms that are allowed."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = URL.create("unreadable")
    backend = url.drivername.partition("+")[0]
    if backend in ("mysql", "mariadb") and url.database:
        return url.set(drivername="mysql+pymysql", password=password or url.password)
    if url.drivername == "sqlite" and url.database and url.database != ":memory:" and not url.query:
        return url
    raise InvalidInput(
        "the database URL is not one this service knows",
        "database",
        remedy="use sqlite:////absolute/path.db or mysql+pymysql://USER@HOST:PORT/DATABASE",
    )


class Database:
    """One open database, used by no other service; `file` is where it is, None for one on a server.

    Its errors are NotReady (away), Conflict (made by a newer version, or in use), InvalidInput (URL).
    """

    def __init__(self, url: URL, clock: Clock, is_shared: bool = False) -> None:
        """With `is_shared`, another service may wait for its turn at the database; `claim` is then renewed."""
        self.name = url.render_as_string(hide_password=True)
        self._statements: dict[str, str] = {}
        self._clock = clock
        self.file = Path(str(url.database)) if url.get_backend_name() == "sqlite" else None
        self._rests: tuple[Rest, ...] = ()
        self._fence: Fence | None = None
        self.claim: Claim | None = None
        lock = ServerLock()
        try:
            with ExitStack() as held, self._translate_errors():
                self._engine, self._reader = _engines(url, held, lock)
                if is_shared:
                    with self._engine.connect() as connection:
                        refuse_claimed(connection)
                with _patient(self._engine) as connection:
                    migrate(connection, self.name)
                if self.file is None:
                    self._open_fence(url, lock, is_shared, held)
                self._held = held.pop_all()
        except (TypeError, ValueError) as error:  # not a host name, an option that the driver does not know
            raise InvalidInput(
                f"the database {self.name} cannot be opened ({error})", "database", remedy="mend its URL"
            ) from error

    def _open_fence(self, url: URL, lock: ServerLock, is_shared: bool, held: ExitStack) -> None:
        """From here on no service that had the database before can write; and whoever waits for its turn knows."""
        began = time.monotonic()
        self._fence = Fence()
        with self._engine.begin() as connection:
            self._fence.open(connection, lock.holder, is_shared)
        lock.check = self._fence.check_cursor
        if is_shared:
            self.claim = Claim(url, self._fence, lambda: lock.holder, began)
            held.callback(self.claim.close)

    def load(self) -> tuple[Configuration, CurrentValues]:
        """Everything that readers may ask, its wall times turned into monotonic ones."""
        configuration, current_values = Configuration(), CurrentValues()
        now = self._clock.monotonic()
        shift = now - self._clock.wall()
        with self._translate_errors(), self._engine.connect() as connection:
            for table in row_mapping.TABLES:
                for row in connection.execute(select(row_mapping.TABLES[table].model)).mappings():
                    row_mapping.place(configuration, table, dict(row), shift, now)
            stored = connection.exec_driver_sql(str(select(*row_mapping.VALUE_COLUMNS).compile(connection)))
            current_values.apply(row_mapping.read_value(row, shift, now) for row in stored)
            self._rests = tuple(forgetting.read_rests(connection))
            newest = _newest_entry(connection)
            if newest is not None:
                configuration.audit["last"] = newest
        return configuration, current_values

    def counter(self, name: str) -> int:
        """A counter as it is stored, 0 when it was never raised; asked on the connection that writes.

        Who asks does not know what was stored last, so what is left to forget is read as well. Superseded when another
        service may have raised it.
        """
        with self._translate_errors(), self._writing() as connection:
            self._rests = tuple(forgetting.read_rests(connection))
            return int(connection.scalar(select(tables.meta.c.value).where(tables.meta.c.name == name)) or 0)

    def save(self, transaction: Transaction) -> None:
        """Store what a transaction changed, all or nothing.

        NotReady when it may not be stored; InvalidInput when the database can never take it.
        """
        shift = self._clock.wall() - self._clock.monotonic()
        with self._translate_errors(), self._writing() as connection:
            self._save_picture(connection, transaction, shift)
            self._save_values(connection, transaction.values, shift)
            if transaction.points:
                self._many(
                    connection, tables.history, [row_mapping.point_row(point, shift) for point in transaction.points]
                )
            rests = forgetting.forget(connection, transaction.forget)
            if transaction.metric_points:  # after what is forgotten, which is of runs before
                self._many(connection, tables.metrics, transaction.metric_points)
            if transaction.forget_audit_to:
                connection.execute(delete(tables.audit).where(tables.audit.c.sequence <= transaction.forget_audit_to))
            if transaction.audit:
                connection.execute(insert(tables.audit), [entry.to_json() for entry in transaction.audit])
        self._rests = (*self._rests, *rests)

    @property
    def has_more_to_forget(self) -> bool:
        """Whether history is left that `forget_part` must delete."""
        return bool(self._rests)

    def forget_part(self) -> None:
        """Delete a part of the history that is forgotten; NotReady when the database is away."""
        with self._translate_errors(), self._writing() as connection:
            done = forgetting.forget_part(connection, self._rests[0])
        self._rests = self._rests[1:] if done else self._rests

    def check_space(self) -> None:
        """NotReady when the disk of a database file is full, even if a small change still finds room."""
        if self.file is None:
            return
        disk = os.statvfs(self.file.parent)
        if disk.f_bavail * disk.f_frsize < _LEAST_FREE:
            raise NotReady(f"the disk of the database {self.name} is full", remedy="free some space there")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection beside the writer's, for what is not kept in memory; NotReady when the database is away."""
        with self._translate_errors(), self._reader.connect() as connection:
            yield connection

    def history(
        self, data_name: str, node_name: str, window: tuple[float, float], most: Most
    ) -> tuple[list[tuple[float, str]], bool]:
        """What one name was on one node between two Unix seconds, oldest first, and whether the oldest are left out."""
        old = tables.history.c
        wanted = (old.data_name == data_name) & (old.node_name == node_name) & old.updated_at.between(*window)
        wanted &= forgetting.is_kept(self._rests, data_name, node_name)
        newest = (
            select(old.updated_at, old.data_value).where(wanted).order_by(old.updated_at.desc()).limit(most.rows + 1)
        )
        with self._streaming(newest) as found:
            points, cut = _take_first((_point(row) for row in found), most, lambda point: len(point[1]))
            return points[::-1], cut

    def metric(self, run_id: str, name: str, after: int, most: int) -> list[tuple[int, MetricPoint]]:
        """The first points of a metric that have an id beyond `after`, with their ids, in the order they came in."""
        one = tables.metrics.c
        after = max(after, forgetting.last_forgotten(self._rests, run_id))
        wanted = select(one.id, one.run_id, one.name, one.value, one.timestamp, one.step)
        wanted = wanted.where((one.run_id == run_id) & (one.name == name) & (one.id > after))
        with self.reading() as connection:
            rows = connection.execute(wanted.order_by(one.id).limit(most))
            return [(row[0], MetricPoint(*row[1:])) for row in rows]

    def audit(self, since: int, most: Most) -> tuple[list[AuditEntry], bool]:
        """The entries of the audit log that follow the one numbered `since`, oldest first, and whether more follow."""
        later = tables.audit.c.sequence > since
        wanted = select(tables.audit).where(later).order_by(tables.audit.c.sequence).limit(most.rows + 1)
        with self._streaming(wanted) as found:
            entries = (AuditEntry.from_json(dict(row)) for row in found.mappings())
            return _take_first(entries, most, lambda entry: len(entry.call) + len(entry.detail))

    def last_entry_before(self, moment: float, most: int) -> AuditEntry | None:
        """The last of the oldest entries that were all made before a Unix second, among the first `most`; else None."""
        entries = tables.audit.c
        with self.reading() as connection:
            oldest = connection.execute(select(entries.sequence).order_by(entries.sequence).limit(1)).scalar()
            if oldest is None:
                return None
            among = entries.sequence < oldest + most
            later = select(entries.sequence).where(among & (entries.at >= moment)).order_by(entries.sequence).limit(1)
            end = connection.execute(later).scalar() or oldest + most
            last = select(tables.audit).where(entries.sequence < end).order_by(entries.sequence.desc()).limit(1)
            row = connection.execute(last).mappings().first()
        return None if row is None else AuditEntry.from_json(dict(row))

    @contextmanager
    def _streaming(self, wanted: Select[Any]) -> Iterator[CursorResult[Any]]:
        """The rows of a query one by one, so that what is not taken costs no memory."""
        with self.reading() as connection, connection.execution_options(stream_results=True).execute(wanted) as found:
            yield found

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction of the writer's; Superseded when another service has the database by now."""
        with self._engine.begin() as connection:
            if self._fence is not None:
                self._fence.check(connection)
            yield connection

    def _save_picture(self, connection: Connection, transaction: Transaction, shift: float) -> None:
        gone: dict[str, list[str]] = defaultdict(list)
        changed: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for table, key in sorted(transaction.changed):
            entry = transaction.find(table, key)
            if entry is None:
                gone[table].append("@".join(key))
            else:
                changed[table].append(row_mapping.TABLES[table].row(key, entry, shift))
        for table, keys in gone.items():
            model = row_mapping.TABLES[table].model
            connection.execute(delete(model).where(next(iter(model.primary_key)).in_(keys)))
        for table, entries in changed.items():
            self._many(connection, row_mapping.TABLES[table].model, entries)

    def _save_values(self, connection: Connection, values: Mapping[Cell, Value | None], shift: float) -> None:
        gone = [row_mapping.cell_id(cell) for cell, value in values.items() if value is None]
        for start in range(0, len(gone), _MOST_PARAMETERS):
            part = gone[start : start + _MOST_PARAMETERS]
            connection.execute(delete(tables.values).where(tables.values.c.id.in_(part)))
        written = [row_mapping.value_row(cell, value, shift) for cell, value in values.items() if value is not None]
        if written:
            self._many(connection, tables.values, written)

    def _many(self, connection: Connection, table: Table, entries: Sequence[tuple[Any, ...]]) -> None:
        """Insert or replace rows, in the columns' order, in the way that costs this database least."""
        text = self._statements.get(table.name)
        if text is None:
            text = self._statements[table.name] = bulk_insert.statement(table, connection)
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(text, list(entries))
            return
        for part in bulk_insert.documents(entries):
            connection.exec_driver_sql(text, (part,))

    def close(self) -> None:
        """Give all connections back, and the database to another service."""
        self._held.close()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (DataError, IntegrityError, OverflowError) as error:
            cause = getattr(error, "orig", None) or error
            raise InvalidInput(
                f"the database {self.name} cannot hold this ({cause})", remedy="give smaller values"
            ) from error
        except (DBAPIError, PoolTimeout) as error:
            cause = getattr(error, "orig", None) or error
            raise complaints.not_ready(self.name, cause) from error


def _newest_entry(connection: Connection) -> AuditEntry | None:
    newest = select(tables.audit).order_by(tables.audit.c.sequence.desc()).limit(1)
    row = connection.execute(newest).mappings().first()
    return None if row is None else AuditEntry.from_json(dict(row))


def _point(row: Any) -> tuple[float, str]:
    return row[0], row[1]


def _take_first(rows: Iterable[T], most: Most, size: Callable[[T], int]) -> tuple[list[T], bool]:
    """The first rows, at least one, and whether that is not all."""
    taken: list[T] = []
    total = 0
    for row in rows:
        total += size(row) + _ROW_BYTES
        if taken and (len(taken) == most.rows or total > most.bytes):
            return taken, True
        taken.append(row)
    return taken, False


def _engines(url: URL, held: ExitStack, lock: ServerLock) -> tuple[Engine, Engine]:
    """The writer's engine, on one connection that its thread alone uses, and the readers'; `held` ends them."""
    lite = url.get_backend_name() == "sqlite"
    if lite:
        held.callback(os.close, _make_private(Path(str(url.database))))
    options = {"connect_args": _CONNECT[url.get_backend_name()], "pool_pre_ping": not lite}
    options["paramstyle"] = "qmark" if lite else "format"
    writer = create_engine(url, pool_size=1, max_overflow=0, **options)
    reader = create_engine(url, pool_size=2, max_overflow=2, pool_timeout=_POOL_SECONDS, **options)
    for engine in (writer, reader):
        held.callback(engine.dispose)
    # Write-ahead logging lets others read the file meanwhile; FULL keeps what was acknowledged after a power cut.
    event.listen(writer, "connect", _set_up_sqlite if lite else lock)
    return writer, reader


@contextmanager
def _patient(engine: Engine) -> Iterator[Connection]:
    """A transaction that a server may take its time for, as a new index over years of history needs; the writer's own
    connection holds the lock meanwhile."""
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            yield connection
            return
        soon = {"connect_timeout": _CONNECT["mysql"]["connect_timeout"]}
        patient = create_engine(engine.url, poolclass=NullPool, connect_args=soon)
        with patient.begin() as other:
            yield other


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _make_private(path: Path) -> int:
    """The file exists, is its owner's only, and locked; SQLite gives its journal the same mode.

    NotReady when it was there before and is empty: SQLite would begin anew in it, and nobody would notice the loss.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_new = not path.exists()
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        lock = lock_file(path)
        if not is_new and path.stat().st_size == 0:
            os.close(lock)
            raise NotReady(
                f"the database file {path} is empty", remedy=f"{complaints.RESTORE}, or remove the file to begin anew"
            )
        return lock
    except OSError as error:
        raise NotReady(
            f"the database file {path} cannot be opened ({error.strerror})", remedy="name another one with --database"
        ) from error
