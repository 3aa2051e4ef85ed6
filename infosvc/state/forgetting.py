"""History that goes, in parts that are soon done: readers see none of it from the first part on.

What one commit has no time for is kept in t_Forget, and deleted between later commits, also by a service that is
started again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, insert, or_, select, true

from infosvc.state import tables
from infosvc.state.transaction import Past

PART = 10_000  # rows that one commit deletes at most

_old = tables.history.c


class Rest(NamedTuple):
    """What is still to be deleted of some history: only rows that were there when it was forgotten, up to id `last`."""

    number: int
    past: Past
    last: int


def forget(connection: Connection, pasts: Sequence[Past]) -> list[Rest]:
    """Delete as much as one commit may, and note down the rest, which is returned."""
    room, rests = PART, []
    for past in pasts:
        deleted = _delete_some(connection, _table(past), _is_past(past), room) if room else 0
        room -= deleted
        if not room:
            rests.append(_note_rest(connection, past))
    return rests


def forget_part(connection: Connection, rest: Rest) -> bool:
    """Delete some rows of what is left; returns whether that was all of it."""
    # The last row stays to the end, because SQLite gives the number of a newest row that is gone to the next one.
    table = _table(rest.past)
    done = _delete_some(connection, table, _is_past(rest.past) & (table.c.id < rest.last), PART) < PART
    if done:
        connection.execute(delete(table).where(_is_past(rest.past) & (table.c.id == rest.last)))
        connection.execute(delete(tables.forget).where(tables.forget.c.id == rest.number))
    return done


def read_rests(connection: Connection) -> list[Rest]:
    """What an earlier service had no time for."""
    rows = connection.execute(select(tables.forget).order_by(tables.forget.c.id))
    return [Rest(row.id, Past(row.data_name, row.node_name, row.before, row.run_id), row.last_id) for row in rows]


def is_kept(rests: Sequence[Rest], data_name: str, node_name: str) -> ColumnElement[bool]:
    """Of the history of one name on one node, what is not forgotten."""
    conditions: Iterator[ColumnElement[bool]] = (
        or_(_old.id > rest.last, *([] if rest.past.before is None else [_old.updated_at >= rest.past.before]))
        for rest in rests
        if rest.past.run_id is None
        and rest.past.data_name in (None, data_name)
        and rest.past.node_name in (None, node_name)
    )
    return and_(true(), *conditions)


def last_forgotten(rests: Sequence[Rest], run_id: str) -> int:
    """The id up to which the points of a run are forgotten: they are of an earlier run with its id."""
    return max((rest.last for rest in rests if rest.past.run_id == run_id), default=0)


def _note_rest(connection: Connection, past: Past) -> Rest:
    last = connection.scalar(select(func.max(_table(past).c.id))) or 0
    made = connection.execute(insert(tables.forget).values(**past._asdict(), last_id=last))
    return Rest(int((made.inserted_primary_key or (0,))[0]), past, last)


def _table(past: Past) -> Table:
    """The table that holds it."""
    return tables.history if past.run_id is None else tables.metrics


def _delete_some(connection: Connection, table: Table, condition: ColumnElement[bool], most: int) -> int:
    # MariaDB takes a limit only in a query of its own within the query.
    some = select(table.c.id).where(condition).limit(most).subquery()
    return connection.execute(delete(table).where(table.c.id.in_(select(some.c.id)))).rowcount


def _is_past(past: Past) -> ColumnElement[bool]:
    if past.run_id is not None:
        return tables.metrics.c.run_id == past.run_id
    conditions: list[ColumnElement[bool]] = []
    if past.data_name is not None:
        conditions.append(_old.data_name == past.data_name)
    if past.node_name is not None:
        conditions.append(_old.node_name == past.node_name)
    if past.before is not None:
        conditions.append(_old.updated_at < past.before)
    return and_(true(), *conditions)
