"""The latest values: one column per data name, each answered in bytes that are made once per change."""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Iterable

import msgspec

from infosvc.state.rendering import render
from infosvc.state.value import Value, size_of
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Producer

# A cached answer says when its ages were true; beyond this many seconds it is made anew.
AGES_TRUE_SECONDS = 0.1

STEP = 30.0  # seconds of which listeners hear the last value of each cell

Cell = tuple[str, str]  # data name, node name


Stepped = tuple[Cell, Value | None]


class Answer(msgspec.Struct, frozen=True):
    """The values of one name in bytes, and the tag that changes whenever a value or a state does.

    `made` and `flips` are monotonic seconds: when the ages were true, and when the next value goes stale. `last` is the
    last node in it, None when no others follow.
    """

    body: bytes
    etag: str
    version: int
    made: float
    flips: float
    producer: Producer
    last: str | None = None


class Column:
    """All values of one data name by node; `version` grows with every commit, `changes` only when a text differs.

    `size` counts the bytes of the texts.
    """

    __slots__ = ("answer", "changes", "making", "rows", "size", "version")

    def __init__(self) -> None:
        self.rows: dict[str, Value] = {}
        self.version = 0
        self.changes = 0
        self.size = 0
        self.answer: Answer | None = None
        self.making = threading.Lock()


class CurrentValues:
    """All columns. One thread writes; any thread reads, because every step of a reader is atomic."""

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}
        self._size = 0
        # Tags of an earlier service must not match by chance.
        self._boot = secrets.token_hex(4)

    def rows(self, data_name: str, node: str | None = None) -> list[tuple[str, Value]]:
        """The values of one name by node, or that of one node; empty when nothing has come."""
        column = self._columns.get(data_name)
        if column is None or node is None:
            return sorted(column.rows.items()) if column else []
        row = column.rows.get(node)
        return [] if row is None else [(node, row)]

    def names(self) -> list[str]:
        """Every name that has a value somewhere."""
        return [name for name, column in list(self._columns.items()) if column.rows]

    def count(self, data_name: str | None = None) -> int:
        """How many values there are, of one name or of all."""
        if data_name is None:
            return sum(len(column.rows) for column in list(self._columns.values()))
        column = self._columns.get(data_name)
        return len(column.rows) if column else 0

    def size(self, data_name: str | None = None) -> int:
        """How many bytes the texts of one name have, or those of all."""
        if data_name is None:
            return self._size
        column = self._columns.get(data_name)
        return column.size if column else 0

    def find(self, data_name: str, node_name: str) -> Value | None:
        """One value, None when there is none."""
        column = self._columns.get(data_name)
        return column.rows.get(node_name) if column else None

    def value(self, data_name: str, node_name: str) -> Value:
        """One value; NotFound says how to bring one."""
        row = self.find(data_name, node_name)
        if row is None:
            raise NotFound(
                f"{data_name} has no value on {node_name!r}",
                "node_name",
                remedy=f"see `nodewise slot list --node {node_name}`, or write one with `nodewise data put`",
            )
        return row

    def changes(self, data_name: str) -> int:
        """In how many commits since the service started a text of this name has changed."""
        column = self._columns.get(data_name)
        return column.changes if column else 0

    def apply(self, changes: Iterable[tuple[Cell, Value | None]], since: float = -math.inf) -> list[Stepped]:
        """Take over what was committed; None removes a value.

        Returns the cells that are new, with their value; those whose value was of a step before `since` (monotonic
        seconds), with the value that was replaced; and those that are gone, with None. Of all others there is none,
        so that whoever keeps one value a step has next to nothing to do.
        """
        touched: dict[str, Column] = {}
        differ: set[str] = set()
        stepped: list[Stepped] = []
        for cell, value in changes:
            data_name, node_name = cell
            column = touched.get(data_name)
            if column is None:
                column = touched[data_name] = self._columns.setdefault(data_name, Column())
            old = column.rows.get(node_name)
            if value is None:
                column.rows.pop(node_name, None)
                stepped.append((cell, None))
            else:
                column.rows[node_name] = value
                if old is None:
                    stepped.append((cell, value))
                elif old.ran < since or value.ran < since:
                    stepped.append((cell, old))
            if value is None or old is None or old.text != value.text:
                differ.add(data_name)
                growth = (size_of(value.text) if value else 0) - (size_of(old.text) if old else 0)
                column.size += growth
                self._size += growth
        for data_name, column in touched.items():
            column.version += 1
            column.changes += data_name in differ
        return stepped

    def answer(self, producer: Producer, now: float, wall: float, most: int) -> Answer:
        """The values of one name as JSON, from the cache if nothing has changed; `now` monotonic, `wall` Unix seconds.

        It has about `most` bytes at most, the same number in all calls. The cached bytes may be AGES_TRUE_SECONDS old:
        their field `time` says when the ages were true.
        """
        column = self._columns.setdefault(producer.data_name, Column())
        answer = self._cached_answer(column, producer, now)
        if answer is None:
            with column.making:  # one makes it, and all others who came meanwhile take that
                answer = self._cached_answer(column, producer, now)
                if answer is None:
                    answer = column.answer = self._render(column, producer, now, wall, most)
        return answer

    def etag(self, producer: Producer, now: float) -> str | None:
        """The tag that the next answer would carry, None when only making it tells."""
        column = self._columns.get(producer.data_name)
        cached = column.answer if column else None
        return cached.etag if column and cached and self._holds(cached, column, producer, now) else None

    def _cached_answer(self, column: Column, producer: Producer, now: float) -> Answer | None:
        """The answer made before, if it still says what is."""
        cached = column.answer
        true = cached is not None and self._holds(cached, column, producer, now)
        return cached if cached is not None and true and now - cached.made < AGES_TRUE_SECONDS else None

    def _holds(self, answer: Answer, column: Column, producer: Producer, now: float) -> bool:
        return answer.version == column.version and answer.producer is producer and now < answer.flips

    def _render(self, column: Column, producer: Producer, now: float, wall: float, most: int) -> Answer:
        version = column.version  # read first: a change meanwhile makes this answer one that no longer holds
        page = render(producer, sorted(column.rows.items()), now, wall, most, column.size)
        etag = f'"{self._boot}-{producer.version}-{version}-{page.stale}"'
        return Answer(page.body, etag, version, now, page.flips, producer, page.last)
