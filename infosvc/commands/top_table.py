"""What `nodewise top` shows: a row for each node, made from one answer of the service and sorted as asked."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from infosvc.commands import show
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput
from infosvc.wire.records import Datum, State

NODE, STATE = "node", "state"
STATES = ("ready", "stale", "lost")
STYLES = {"ready": "green", "stale": "yellow", "lost": "red"}
BYTES = ("bytes", "bytes/second")
WIDEST = 32  # characters of a value: what is a whole document would leave no room for the others
MISSING = "-"


@dataclass(frozen=True)
class Row:
    """One node with a value, or None, for each name; `state` is None when it has values and is not enrolled."""

    node_name: str
    state: str | None
    values: Mapping[str, Datum | None]

    def to_json(self) -> dict[str, Any]:
        """The node, and each value as the service said it."""
        values = {name: datum.to_json() if datum else None for name, datum in self.values.items()}
        return {"node_name": self.node_name, "state": self.state, "values": values}


@dataclass(frozen=True)
class Order:
    """Which nodes are shown, and by which column: node, state or a data name."""

    by: str = NODE
    reverse: bool = False
    part: str = ""

    def of(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that fit, in order; what has nothing in this column comes last either way."""
        fitting = [row for row in rows if self.part.casefold() in row.node_name.casefold()]
        keys = {row.node_name: _key(row, self.by) for row in fitting}
        there = [row for row in fitting if keys[row.node_name] is not None]
        there.sort(key=lambda row: keys[row.node_name] or (), reverse=self.reverse)
        return there + [row for row in fitting if keys[row.node_name] is None]


@dataclass(frozen=True)
class Look:
    """What the service said about all nodes at `at` in Unix and `came` in monotonic seconds."""

    rows: Sequence[Row]
    at: float
    came: float


def look(client: InfoClient, names: Sequence[str]) -> Look:
    """Ask for the nodes, and for all values in one call; every InfoError of the client."""
    states: dict[str, str | None] = {node.node_name: node.state for node in client.nodes()}
    values: dict[str, dict[str, Datum | None]] = {name: dict.fromkeys(names) for name in states}
    for name, column in client.data_many(names).items():
        for datum in column:
            values.setdefault(datum.node_name, dict.fromkeys(names))[name] = datum
    rows = [Row(name, states.get(name), found) for name, found in sorted(values.items())]
    return Look(rows, time.time(), time.monotonic())


def table(rows: Sequence[Row], units: Mapping[str, str], passed: float = 0.0) -> Table:
    """The rows under two lines of heading; `passed` seconds have gone by since the service said the ages.

    Every row takes one line, whatever the width, so that the rows of a terminal can be counted.
    """
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in (NODE, STATE):
        made.add_column(name, no_wrap=True, overflow="ellipsis")
    for name, unit in units.items():
        head = Text(f"{name}\n{show.plain(unit)}")
        made.add_column(head, no_wrap=True, overflow="ellipsis", justify="right", max_width=max(WIDEST, len(name)))
    for row in rows:
        state = row.state or MISSING
        cells = [_value(row.values[name], passed) for name in units]
        made.add_row(Text(show.plain(row.node_name)), Text(state, STYLES.get(state, "")), *cells)
    return made


def count_line(rows: Sequence[Row]) -> str:
    """How many nodes there are, and in which states."""
    states = Counter(row.state or "not enrolled" for row in rows)
    told = [f"{states[state]:,} {state}" for state in (*STATES, "not enrolled") if states[state]]
    return f"{len(rows):,} node{'' if len(rows) == 1 else 's'}" + (f": {', '.join(told)}" if told else "")


def _key(row: Row, by: str) -> tuple[int, float, str] | None:
    """Sorts numbers before text."""
    if by == NODE:
        return (0, 0.0, row.node_name)
    if by == STATE:
        return None if row.state is None else (0, float(STATES.index(row.state)), "")
    datum = row.values[by]
    if datum is None or datum.data_value is None:
        return None
    number = _number(datum)
    return (1, 0.0, datum.data_value) if number is None else (0, number, "")


def _value(datum: Datum | None, passed: float) -> Text:
    """One cell: an old value is dim and tells its age, one whose last run went wrong says that too."""
    failed = datum is not None and datum.state is State.FAILED
    if datum is None or datum.data_value is None:
        return Text(f"{MISSING} (failed)" if failed else MISSING, "dim")
    text = _value_text(datum)
    age = None if datum.age is None else datum.age + passed
    if not failed and age is not None and age <= datum.ttl and datum.state is State.FRESH:
        return Text(text)
    said = [show.seconds(age), *(["failed"] if failed else [])]
    return Text(f"{text} ({', '.join(filter(None, said))})", "dim")


def _value_text(datum: Datum) -> str:
    number = _number(datum)
    if number is None:
        return show.plain(datum.data_value)
    if datum.unit in BYTES:
        return decimal(round(number))
    return f"{number:.2f}" if datum.unit == "ratio" else f"{number:.6g}"


def _number(datum: Datum) -> float | None:
    try:
        return datum.number()
    except InvalidInput:
        return None
