"""Brings the tables of an older version to this one's columns, and leaves those of a newer version alone."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Column, Connection, Double, String, insert, inspect, select, update

from infosvc import models
from infosvc.errors import Conflict

_VERSION = models.meta.c.name == "schema_version"


def migrate(connection: Connection, name: str) -> None:
    """Make missing tables and columns; Conflict when a newer version made the database `name`."""
    models.meta.create(connection, checkfirst=True)
    found = connection.scalar(select(models.meta.c.value).where(_VERSION))
    if found is not None and found > models.SCHEMA_VERSION:
        raise Conflict(
            f"the database {name} has schema {found}, made by a newer nodewise; this one knows schema "
            f"{models.SCHEMA_VERSION}: upgrade nodewise, or name another database with --database"
        )
    models.metadata.create_all(connection)
    if found is None:
        connection.execute(insert(models.meta).values(name="schema_version", value=models.SCHEMA_VERSION))
    elif found < models.SCHEMA_VERSION:
        _add_columns(connection)
        connection.execute(update(models.meta).where(_VERSION).values(value=models.SCHEMA_VERSION))


def _add_columns(connection: Connection) -> None:
    """Every column that a table lacks, with an empty value in the rows that are there."""
    quote = connection.dialect.identifier_preparer.quote
    for table in models.metadata.sorted_tables:
        there = {column["name"] for column in inspect(connection).get_columns(table.name)}
        for column in (column for column in table.columns if column.name not in there):
            kind = connection.dialect.type_compiler_instance.process(column.type)
            connection.exec_driver_sql(f"ALTER TABLE {quote(table.name)} ADD COLUMN {quote(column.name)} {kind}")
            if not column.nullable:
                connection.execute(update(table).values({column.name: _empty(column)}))


def _empty(column: Column[Any]) -> Any:
    """What a row of the older version has under a new column."""
    if isinstance(column.type, String):
        return ""
    if isinstance(column.type, Double):
        return 0.0
    return [] if isinstance(column.type, JSON) else 0
