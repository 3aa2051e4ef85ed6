"""Every SQL statement: opens the database, loads the picture once, and stores what a draft changed."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, delete, event, insert, make_url, select
from sqlalchemy.dialects import mysql, sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from infosvc import models
from infosvc.errors import Conflict, InvalidInput, NotReady
from infosvc.latest import Draft, Key, Machine, Picture, Value, Wish
from infosvc.lock import lock_file, lock_server
from infosvc.records import Outcome, Producer
from infosvc.settings import Clock

Row = dict[str, Any]

TABLES: dict[str, Table] = {
    "producers": models.producers,
    "nodes": models.nodes,
    "slots": models.slots,
    "values": models.values,
}

_CONNECT: dict[str, Row] = {
    "sqlite": {"timeout": 5.0},
    "mysql": {"connect_timeout": 3, "read_timeout": 5, "write_timeout": 5},
}


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
        "the database URL is not one this service knows: use sqlite:////absolute/path.db "
        "or mysql+pymysql://USER@HOST:PORT/DATABASE",
        "database",
    )


class Store:
    """One open database, used by no other service.

    Its errors are NotReady (away), Conflict (made by a newer version, or in use), InvalidInput (URL).
    """

    def __init__(self, url: URL, clock: Clock) -> None:
        self.name = url.render_as_string(hide_password=True)
        self._clock = clock
        try:
            with ExitStack() as held, self._reported():
                self._engine = _engine(url, held)
                with self._engine.begin() as connection:
                    models.metadata.create_all(connection)
                    self._check_version(connection)
                self._held = held.pop_all()
        except (TypeError, ValueError) as error:  # a host that is none, an option that the driver does not know
            raise InvalidInput(
                f"the database {self.name} cannot be opened ({error}): mend its URL", "database"
            ) from error

    def load(self) -> Picture:
        """Everything that is stored, its wall times turned into monotonic ones."""
        picture = Picture()
        with self._reported(), self._engine.connect() as connection:
            for table, model in TABLES.items():
                for row in connection.execute(select(model)).mappings():
                    _place(picture, table, dict(row), self._clock.monotonic() - self._clock.wall())
        return picture

    def save(self, draft: Draft) -> None:
        """Store what a draft changed, all or nothing; an empty draft still proves that the database answers."""
        shift = self._clock.wall() - self._clock.monotonic()
        gone: dict[str, list[str]] = defaultdict(list)
        rows: dict[str, list[Row]] = defaultdict(list)
        for table, *key in sorted(draft.changed):
            entry = _find(draft.picture, table, tuple(key))
            if entry is None:
                gone[table].append("@".join(key))
            else:
                rows[table].append(_row(tuple(key), entry, shift))
        with self._reported(), self._engine.begin() as connection:
            connection.execute(select(1))
            for table, keys in gone.items():
                primary = next(iter(TABLES[table].primary_key))
                connection.execute(delete(TABLES[table]).where(primary.in_(keys)))
            for table, changed in rows.items():
                connection.execute(_upsert(TABLES[table], connection.dialect.name), changed)

    def close(self) -> None:
        """Give all connections back, and the database to another service."""
        self._held.close()

    def _check_version(self, connection: Connection) -> None:
        found = connection.scalar(select(models.meta.c.value).where(models.meta.c.name == "schema_version"))
        if found is None:
            connection.execute(insert(models.meta).values(name="schema_version", value=models.SCHEMA_VERSION))
        elif found > models.SCHEMA_VERSION:
            raise Conflict(
                f"the database {self.name} has schema {found}, made by a newer nodewise; this one knows schema "
                f"{models.SCHEMA_VERSION}: upgrade nodewise, or name another database with --database"
            )

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            said = getattr(error, "orig", None) or error
            raise NotReady(
                f"the database {self.name} does not answer ({said}): start it, or name another one with --database"
            ) from error


def _engine(url: URL, held: ExitStack) -> Engine:
    """An engine on one connection, which the writer's thread alone uses; what must be given back goes into `held`."""
    lite = url.get_backend_name() == "sqlite"
    if lite:
        held.callback(os.close, _make_private(Path(str(url.database))))
    engine = create_engine(
        url, connect_args=_CONNECT[url.get_backend_name()], pool_size=1, max_overflow=0, pool_pre_ping=not lite
    )
    held.callback(engine.dispose)
    # Write-ahead logging lets others read the file meanwhile; FULL keeps what was acknowledged after a power cut.
    event.listen(engine, "connect", _set_up_sqlite if lite else lock_server)
    return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _make_private(path: Path) -> int:
    """The file exists, is its owner's only, and locked; SQLite gives its journal the same mode."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        return lock_file(path)
    except OSError as error:
        raise NotReady(
            f"the database file {path} cannot be opened ({error.strerror}): name another one with --database"
        ) from error


def _upsert(table: Table, dialect: str) -> Any:
    """Insert or replace, in the words of either database."""
    others = [column.name for column in table.columns if not column.primary_key]
    if dialect == "sqlite":
        lite = sqlite.insert(table)
        keys = [column.name for column in table.primary_key]
        return lite.on_conflict_do_update(index_elements=keys, set_={name: lite.excluded[name] for name in others})
    my = mysql.insert(table)
    return my.on_duplicate_key_update({name: my.inserted[name] for name in others})


def _find(picture: Picture, table: str, key: Key) -> Any:
    rows = getattr(picture, table)
    for part in key[:-1]:
        rows = rows.get(part, {})
    return rows.get(key[-1])


def _row(key: Key, entry: Any, shift: float) -> Row:
    """One entry of the picture as a row; `shift` turns monotonic seconds into Unix seconds."""
    if isinstance(entry, Producer):
        return entry.to_json()
    if isinstance(entry, Machine):
        return {
            "node_name": key[0],
            "address": entry.address,
            "agent_version": entry.agent_version,
            "wanted_version": entry.version,
            "last_seen": _shifted(entry.seen, shift),
            "boot": entry.boot,
            "sequence": entry.sequence,
        }
    if isinstance(entry, Wish):
        names = {"id": "@".join(key), "node_name": key[0], "data_name": key[1]}
        return names | {"running": entry.running, "interval": entry.interval}
    return {
        "id": "@".join(key),
        "data_name": key[0],
        "data_value": entry.data_value,
        "node_name": key[1],
        "updated_at": _shifted(entry.measured, shift),
        "outcome": entry.outcome.value,
        "reason": entry.reason,
        "ran_at": entry.ran + shift,
        "duration": entry.duration,
        "sequence": entry.sequence,
    }


def _place(picture: Picture, table: str, row: Row, shift: float) -> None:
    """Put one row where `_row` took it from; `shift` turns Unix seconds into monotonic seconds."""
    if table == "producers":
        picture.producers[row["data_name"]] = Producer.from_json(row)
    elif table == "nodes":
        seen = _shifted(row["last_seen"], shift)
        machine = Machine(
            row["address"], row["agent_version"], row["wanted_version"], seen, row["boot"], row["sequence"]
        )
        picture.nodes[row["node_name"]] = machine
    elif table == "slots":
        picture.slots.setdefault(row["node_name"], {})[row["data_name"]] = Wish(row["running"], row["interval"])
    else:
        picture.values.setdefault(row["data_name"], {})[row["node_name"]] = Value(
            row["data_value"],
            _shifted(row["updated_at"], shift),
            Outcome(row["outcome"]),
            row["reason"],
            row["ran_at"] + shift,
            row["duration"],
            row["sequence"],
        )


def _shifted(seconds: float | None, shift: float) -> float | None:
    return None if seconds is None else seconds + shift
