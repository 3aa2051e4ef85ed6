"""What one commit will change: a copy on write of the configuration, and values that will be current."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import msgspec

from infosvc.state.configuration import Configuration
from infosvc.state.current_values import Cell, CurrentValues, Stepped
from infosvc.state.tracked import MetricPoint
from infosvc.state.value import Value
from infosvc.wire.answers import AuditEntry

Key = tuple[str, ...]


class Past(NamedTuple):
    """History that goes: of a name, of a node, or of both; up to a Unix second, or all of it.

    With `run_id` it is all points of that run instead.
    """

    data_name: str | None
    node_name: str | None
    before: float | None = None
    run_id: str | None = None


class Point(NamedTuple):
    """One value for the history; `measured` is monotonic seconds."""

    data_name: str
    node_name: str
    measured: float
    text: str


class Transaction:
    """May be changed freely: nobody sees it until it is committed.

    `changed` names the rows of the configuration that differ from `base`; `values`, `points` and `metric_points` are
    what a commit adds, `grown` the bytes that programs add to each name; `forget` is the history that it removes,
    `forget_audit_to` the last entry of the audit log that it removes.
    """

    def __init__(self, base: Configuration, current_values: CurrentValues) -> None:
        self.base = base
        self.configuration = copy(base)
        self.changed: set[tuple[str, Key]] = set()
        self.values: dict[Cell, Value | None] = {}
        self.points: list[Point] = []
        self.metric_points: list[MetricPoint] = []
        self.grown: Counter[str] = Counter()
        self.audit: list[AuditEntry] = []
        self.forget: list[Past] = []
        self.forget_audit_to = 0
        self._current_values = current_values

    def put(self, table: str, key: Key, row: Any) -> None:
        """Set the row of `table` (a field of Configuration) under `key`, or remove it with None."""
        rows = self.rows(table)
        for part in key[:-1]:
            rows = self._own(table, rows, part)
        if row is None:
            rows.pop(key[-1], None)
        else:
            rows[key[-1]] = row
        self.changed.add((table, key))

    def rows(self, table: str) -> dict[str, Any]:
        """All rows of `table`, to be changed: copied the first time, so that the base stays as it is.

        Most commits touch one or two tables, and some tables have thousands of rows.
        """
        rows: dict[str, Any] = getattr(self.configuration, table)
        if rows is getattr(self.base, table):
            rows = dict(rows)
            object.__setattr__(self.configuration, table, rows)  # frozen for all but this transaction, which made it
        return rows

    def find(self, table: str, key: Key) -> Any:
        """One row as it will be after this commit, None when there is none."""
        rows = getattr(self.configuration, table)
        for part in key[:-1]:
            rows = rows.get(part, {})
        return rows.get(key[-1])

    def value(self, data_name: str, node_name: str) -> Value | None:
        """One value as it will be after this commit."""
        if self.values:
            cell = (data_name, node_name)
            if cell in self.values:
                return self.values[cell]
        return self._current_values.find(data_name, node_name)

    def cells(self, data_name: str | None = None, node_name: str | None = None) -> list[Cell]:
        """All values of a name or of a node, as it will be after this commit."""
        names = (
            [data_name]
            if data_name is not None
            else [*self._current_values.names(), *(name for name, _ in self.values)]
        )
        found = {(name, node) for name in names for node, _ in self._current_values.rows(name)} | set(self.values)
        wanted = [cell for cell in found if data_name in (None, cell[0]) and node_name in (None, cell[1])]
        return [cell for cell in wanted if self.value(*cell) is not None]

    def remove_run(self, run_id: str) -> None:
        """Remove a run with all its points, also those that are not stored yet."""
        self.metric_points = [point for point in self.metric_points if point.run_id != run_id]
        self.forget.append(Past(None, None, run_id=run_id))
        self.put("runs", (run_id,), None)

    def bump(self, node_name: str) -> None:
        """Give a node's wanted state its next version, so that its agent fetches it."""
        machine = self.configuration.nodes[node_name]
        self.put("nodes", (node_name,), msgspec.structs.replace(machine, version=machine.version + 1))

    def nodes_with_slot(self, data_name: str) -> list[str]:
        """The nodes that have a slot for a producer."""
        return [node_name for node_name, names in self.configuration.slots.items() if data_name in names]

    def _own(self, table: str, rows: dict[str, Any], part: str) -> dict[str, Any]:
        """The inner rows under `part`, copied the first time so that the base stays as it is."""
        inner: dict[str, Any] = rows.get(part, {})
        if inner is getattr(self.base, table).get(part, inner):
            inner = rows[part] = dict(inner)
        return inner


class Commit(NamedTuple):
    """What was just committed, for those who tell others; `stepped` is what CurrentValues.apply has returned."""

    before: Configuration
    after: Configuration
    changed: set[tuple[str, Key]]
    values: dict[Cell, Value | None]
    stepped: Sequence[Stepped] = ()
