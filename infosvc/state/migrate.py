"""Brings tables of an older version to this one's columns and indexes, and leaves those of a newer version alone."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Column, Connection, Double, String, insert, inspect, select, update

from infosvc.state import tables
from infosvc.state.complaints import lacking
from infosvc.wire.errors import Conflict

_FIRST = frozenset({tables.producers.name, tables.values.name, tables.nodes.name, tables.slots.name})
_VERSION = tables.meta.c.name == "schema_version"


def migrate(connection: Connection, name: str) -> None:
    """Make missing tables and columns; Conflict when a newer version made the database `name`.

    NotReady when a service has used it and it has lost tables since.
    """
    there = set(inspect(connection).get_table_names())
    tables.meta.create(connection, checkfirst=True)
    version = connection.scalar(select(tables.meta.c.value).where(_VERSION))
    if version is not None and version > tables.SCHEMA_VERSION:
        raise Conflict(
            f"the database {name} has schema {version}, made by a newer nodewise; this one knows schema "
            f"{tables.SCHEMA_VERSION}",
            remedy="upgrade nodewise, or name another database with --database",
        )
    _refuse_loss(name, there, version)
    tables.metadata.create_all(connection)
    if version is None:
        connection.execute(insert(tables.meta).values(name="schema_version", value=tables.SCHEMA_VERSION))
    elif version < tables.SCHEMA_VERSION:
        _add_columns(connection)
        _add_indexes(connection)
        connection.execute(update(tables.meta).where(_VERSION).values(value=tables.SCHEMA_VERSION))


def _refuse_loss(name: str, there: set[str], version: int | None) -> None:
    """A new database has none of our tables, one that was used all of its version; the first had only some."""
    ours = {table.name for table in tables.metadata.sorted_tables}
    if version is None and not there & ours:
        return
    needed = ours if version == tables.SCHEMA_VERSION else {tables.meta.name, *_FIRST}
    lost = sorted(needed - there) or ([] if version else [f"its version in {tables.meta.name}"])
    if lost:
        raise lacking(name, lost)


def _add_columns(connection: Connection) -> None:
    """Every column that a table lacks, with an empty value in the rows that are there."""
    quote = connection.dialect.identifier_preparer.quote
    for table in tables.metadata.sorted_tables:
        there = {column["name"] for column in inspect(connection).get_columns(table.name)}
        for column in (column for column in table.columns if column.name not in there):
            kind = connection.dialect.type_compiler_instance.process(column.type)
            connection.exec_driver_sql(f"ALTER TABLE {quote(table.name)} ADD COLUMN {quote(column.name)} {kind}")
            if not column.nullable:
                connection.execute(update(table).values({column.name: _empty(column)}))


def _add_indexes(connection: Connection) -> None:
    """Every index that a table lacks."""
    for table in tables.metadata.sorted_tables:
        there = {index["name"] for index in inspect(connection).get_indexes(table.name)}
        for index in (index for index in table.indexes if index.name not in there):
            index.create(connection)


def _empty(column: Column[Any]) -> Any:
    """What a row of the older version has under a new column."""
    if isinstance(column.type, String):
        return ""
    if isinstance(column.type, Double):
        return 0.0
    return [] if isinstance(column.type, JSON) else 0
