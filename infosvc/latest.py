"""The latest of everything, in memory: readers see one immutable picture, and never the database.

The writer works on a Draft, a copy on write of the picture, and publishes it when it is committed. So a reader
needs no lock and never sees what was not stored.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any

from infosvc.errors import NotFound
from infosvc.records import Datum, Node, Outcome, Producer, Slot, State, Wanted
from infosvc.settings import Clock, Settings


@dataclass(frozen=True)
class Value:
    """One row of t_Data; `measured` and `ran` are monotonic seconds, `measured` is None as long as no value came."""

    data_value: str | None
    measured: float | None
    outcome: Outcome
    reason: str | None
    ran: float
    duration: float | None = None
    sequence: int = 1


@dataclass(frozen=True)
class Machine:
    """One enrolled node; `seen` is monotonic seconds, `version` that of its wanted state."""

    address: str
    agent_version: str
    version: int
    seen: float | None = None
    boot: str = ""
    sequence: int = 0


@dataclass(frozen=True)
class Wish:
    """One slot as it is wanted; without an `interval` (seconds) the producer's time_max counts."""

    running: bool
    interval: float | None = None


@dataclass(frozen=True)
class Picture:
    """Everything at one moment: producers by name, nodes by name, slots by node and name, values by name and node."""

    producers: dict[str, Producer] = field(default_factory=dict)
    nodes: dict[str, Machine] = field(default_factory=dict)
    slots: dict[str, dict[str, Wish]] = field(default_factory=dict)
    values: dict[str, dict[str, Value]] = field(default_factory=dict)

    def producer(self, data_name: str) -> Producer:
        """A registered producer; NotFound says how to register it and which names are close."""
        if data_name in self.producers:
            return self.producers[data_name]
        close = difflib.get_close_matches(data_name, self.producers, n=3)
        raise NotFound(
            f"no producer is registered under {data_name!r}: "
            f"register it with `nodewise producer put {data_name} --cmd ... --time-max ...`"
            + (f", or use a name close to it: {', '.join(close)}" if close else ""),
            "data_name",
        )

    def node(self, node_name: str) -> Machine:
        """An enrolled node; NotFound says how to enrol it."""
        if node_name not in self.nodes:
            raise NotFound(
                f"no node is called {node_name!r}: enrol it with `nodewise node add {node_name}`", "node_name"
            )
        return self.nodes[node_name]

    def wish(self, node_name: str, data_name: str) -> Wish:
        """One slot of a node; NotFound says how to start it."""
        self.node(node_name)
        found = self.slots.get(node_name, {}).get(data_name)
        if found is None:
            raise NotFound(
                f"{node_name} has no slot for {data_name!r}: "
                f"start one with `nodewise slot start {data_name} --node {node_name}`",
                "data_name",
            )
        return found

    def value(self, data_name: str, node_name: str) -> Value:
        """The row of one name on one node; NotFound when nothing has been written there."""
        self.producer(data_name)
        found = self.values.get(data_name, {}).get(node_name)
        if found is None:
            raise NotFound(
                f"{data_name} has no value on {node_name!r}: "
                f"see `nodewise slot list --node {node_name}`, or write one with `nodewise data put`",
                "node_name",
            )
        return found


Key = tuple[str, ...]


class Draft:
    """A picture that may be changed; `changed` names the rows that differ from what it was made of."""

    def __init__(self, base: Picture) -> None:
        self.base = base
        self.picture = Picture(dict(base.producers), dict(base.nodes), dict(base.slots), dict(base.values))
        self.changed: set[Key] = set()

    def put(self, table: str, key: Key, row: Any) -> None:
        """Set the row of `table` (a field of Picture) under `key`, or remove it with None."""
        rows: dict[str, Any] = getattr(self.picture, table)
        for part in key[:-1]:
            rows = self._own(table, rows, part)
        if row is None:
            rows.pop(key[-1], None)
        else:
            rows[key[-1]] = row
        self.changed.add((table, *key))

    def _own(self, table: str, rows: dict[str, Any], part: str) -> dict[str, Any]:
        """The inner rows under `part`, copied the first time so that the base stays as it is."""
        inner: dict[str, Any] = rows.get(part, {})
        if inner is getattr(self.base, table).get(part, inner):
            inner = rows[part] = dict(inner)
        return inner


class Latest:
    """What readers ask, answered from the current picture in the wire's records."""

    def __init__(self, picture: Picture, settings: Settings, clock: Clock) -> None:
        self.picture = picture
        self.clock = clock
        self._settings = settings

    def producers(self) -> list[Producer]:
        """All producers by name."""
        return [row for _, row in sorted(self.picture.producers.items())]

    def nodes(self) -> list[Node]:
        """All nodes by name."""
        return [self.node(name) for name in sorted(self.picture.nodes)]

    def node(self, node_name: str) -> Node:
        """One node; `last_seen` in Unix seconds."""
        machine = self.picture.node(node_name)
        if machine.seen is None:
            return Node(node_name, machine.address, agent_version=machine.agent_version)
        silent = self.clock.monotonic() - machine.seen
        state = "ready" if silent <= self._settings.ready_within else "stale"
        state = "lost" if silent > self._settings.lost_after else state
        return Node(node_name, machine.address, state, self.clock.wall() - silent, machine.agent_version)

    def wanted(self, node_name: str) -> Wanted:
        """All slots of one node by name, with how each last ended."""
        picture = self.picture
        version = picture.node(node_name).version
        names = sorted(picture.slots.get(node_name, {}))
        return Wanted(version, tuple(self._slot(picture, node_name, name) for name in names))

    def slot(self, node_name: str, data_name: str) -> Slot:
        """One slot of a node."""
        return self._slot(self.picture, node_name, data_name)

    def data(self, data_name: str, node: str | None = None, max_age: float | None = None) -> list[Datum]:
        """The values of one name by node, those older than `max_age` seconds left out."""
        picture = self.picture
        producer = picture.producer(data_name)
        rows = picture.values.get(data_name, {})
        names = sorted(rows) if node is None else [node] * (node in rows)
        found = [self._datum(producer, name, rows[name]) for name in names]
        return [datum for datum in found if max_age is None or (datum.age is not None and datum.age <= max_age)]

    def datum(self, data_name: str, node_name: str) -> Datum:
        """One value."""
        picture = self.picture
        return self._datum(picture.producer(data_name), node_name, picture.value(data_name, node_name))

    def _datum(self, producer: Producer, node_name: str, row: Value) -> Datum:
        age = None if row.measured is None else max(0.0, self.clock.monotonic() - row.measured)
        ttl = float(producer.ttl or 0.0)
        return Datum(
            producer.data_name,
            node_name,
            row.data_value,
            age,
            ttl,
            _state(row.outcome, age, ttl),
            row.outcome,
            row.reason,
            producer.unit,
        )

    def _slot(self, picture: Picture, node_name: str, data_name: str) -> Slot:
        wish = picture.wish(node_name, data_name)
        producer = picture.producer(data_name)
        last = picture.values.get(data_name, {}).get(node_name)
        slot = {
            "data_name": data_name,
            "cmd": producer.cmd,
            "interval": producer.time_max if wish.interval is None else wish.interval,
            "timeout": producer.timeout,
            "running": wish.running,
            "sha256": producer.sha256,
        }
        if last is not None:
            age = max(0.0, self.clock.monotonic() - last.ran)
            slot |= {"outcome": last.outcome, "duration": last.duration, "reason": last.reason, "age": age}
        return Slot.from_json(slot)


def _state(outcome: Outcome, age: float | None, ttl: float) -> State:
    """A failed last run outweighs age: the old value is still shown, but a reader must know."""
    if outcome in (Outcome.FAILED, Outcome.TIMEOUT, Outcome.REFUSED):
        return State.FAILED
    return State.STALE if age is None or age > ttl else State.FRESH
