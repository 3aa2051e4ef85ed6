"""Many rows at once: SQLite takes them from its driver, MySQL and MariaDB out of one JSON document.

PyMySQL writes each value into the statement in Python, which costs three times what the server needs to read JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Column, Connection, String, Table
from sqlalchemy.dialects import sqlite

DOCUMENT_BYTES = 2 << 20  # far below the 16 MB that a server takes as one statement
_ROW_BYTES = 200


def statement(table: Table, connection: Connection) -> str:
    """Insert or replace rows of a table, in its columns' order but those the database numbers itself."""
    columns = [column for column in table.columns if column.autoincrement is not True]
    if connection.dialect.name == "sqlite":
        return _sqlite(table, columns, connection)
    return _mysql(table, columns, connection)


def documents(entries: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """Rows as JSON documents that a server takes in one statement each."""
    part: list[tuple[Any, ...]] = []
    size = 0
    for entry in entries:
        part.append(entry)
        size += _ROW_BYTES + sum(len(text) for text in entry if type(text) is str)
        if size > DOCUMENT_BYTES:
            yield msgspec.json.encode(part).decode()
            part, size = [], 0
    if part:
        yield msgspec.json.encode(part).decode()


def _sqlite(table: Table, columns: Sequence[Column[Any]], connection: Connection) -> str:
    insert = sqlite.insert(table)
    keys = [column.name for column in columns if column.primary_key]
    if keys:
        replaced = {column.name: insert.excluded[column.name] for column in columns if not column.primary_key}
        insert = insert.on_conflict_do_update(index_elements=keys, set_=replaced)
    return str(insert.compile(connection, column_keys=[column.name for column in columns]))


def _mysql(table: Table, columns: Sequence[Column[Any]], connection: Connection) -> str:
    quote = connection.dialect.identifier_preparer.quote
    names = ", ".join(quote(column.name) for column in columns)
    read = ", ".join(f"{quote(c.name)} {_json_type(c, connection)} PATH '$[{at}]'" for at, c in enumerate(columns))
    replaced = ", ".join(f"{quote(c.name)} = VALUES({quote(c.name)})" for c in columns if not c.primary_key)
    told = f" ON DUPLICATE KEY UPDATE {replaced}" if any(column.primary_key for column in columns) else ""
    return (
        f"INSERT INTO {quote(table.name)} ({names}) "  # noqa: S608 - the tables' own names
        f"SELECT {names} FROM JSON_TABLE(%s, '$[*]' COLUMNS({read})) AS told{told}"
    )


def _json_type(column: Column[Any], connection: Connection) -> str:
    name: str = connection.dialect.type_compiler_instance.process(column.type)
    # JSON columns arrive as text, true and false as 1 and 0.
    name = {"JSON": "LONGTEXT", "BOOL": "TINYINT"}.get(name, name)
    return f"{name} CHARACTER SET utf8mb4" if isinstance(column.type, String) or name == "LONGTEXT" else name
