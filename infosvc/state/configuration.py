"""The latest of everything, in memory: readers ask it and never the database.

Configuration is one immutable picture, replaced as a whole; values lie on a board of one column per data name. The
writer changes both only after what it changes is stored (or, with ack fast, noted down), so no reader needs a lock.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from infosvc.settings import Clock, Settings
from infosvc.state.current_values import Board, Value, state_of
from infosvc.wire.answers import AuditEntry, Token
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Kind, Node, Producer, Scope, Slot, Wanted


class Machine(msgspec.Struct, frozen=True, gc=False):
    """One enrolled node; `seen` is monotonic seconds, `version` that of its wanted state."""

    address: str
    agent_version: str
    version: int
    seen: float | None = None
    boot: str = ""
    sequence: int = 0
    dropped: int = 0


@dataclass(frozen=True)
class Wish:
    """One slot as it is wanted; without an `interval` (seconds) the producer's time_max counts.

    `epoch` counts how often its quarantine was lifted. A `placed` slot is one for which the service chose the node.
    """

    running: bool
    interval: float | None = None
    epoch: int = 0
    placed: bool = False


@dataclass(frozen=True)
class StoredToken:
    """A token as it is kept: what may be shown of it, and its SHA-256."""

    token: Token
    sha256: str


@dataclass(frozen=True)
class Picture:
    """The configuration at one moment: producers by name, nodes by name, slots by node and name, tokens by id.

    `audit` holds the newest entry of the audit log under "last", `counters` what must never be counted anew.
    """

    producers: dict[str, Producer] = field(default_factory=dict)
    nodes: dict[str, Machine] = field(default_factory=dict)
    slots: dict[str, dict[str, Wish]] = field(default_factory=dict)
    tokens: dict[str, StoredToken] = field(default_factory=dict)
    audit: dict[str, AuditEntry] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

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
                f"no node is called {node_name!r}", "node_name", remedy=f"enrol it with `nodewise node add {node_name}`"
            )
        return self.nodes[node_name]

    def wish(self, node_name: str, data_name: str) -> Wish:
        """One slot of a node; NotFound says how to start it."""
        self.node(node_name)
        found = self.slots.get(node_name, {}).get(data_name)
        if found is None:
            raise NotFound(
                f"{node_name} has no slot for {data_name!r}",
                "data_name",
                remedy=f"start one with `nodewise slot start {data_name} --node {node_name}`",
            )
        return found


class Latest:
    """What readers ask, answered from the current picture and the board in the wire's records."""

    def __init__(self, picture: Picture, board: Board, settings: Settings, clock: Clock) -> None:
        self.picture = picture
        self.board = board
        # When each agent was last heard, in monotonic seconds; younger than what is stored while the database is away.
        self.heard: dict[str, float] = {}
        self.clock = clock
        self._settings = settings

    def producers(self) -> list[Producer]:
        """All producers by name."""
        return [row for _, row in sorted(self.picture.producers.items())]

    def nodes(self) -> list[Node]:
        """All nodes by name."""
        picture = self.picture
        return [self._node(name, machine) for name, machine in sorted(picture.nodes.items())]

    def node(self, node_name: str) -> Node:
        """One node; `last_seen` in Unix seconds."""
        return self._node(node_name, self.picture.node(node_name))

    def seen(self, node_name: str) -> float | None:
        """When a node was last heard of, in monotonic seconds; None when it never was."""
        machine = self.picture.nodes.get(node_name)
        times = (machine.seen if machine else None, self.heard.get(node_name))
        return max((at for at in times if at is not None), default=None)

    def state(self, node_name: str) -> str:
        """ready; stale after three silent heartbeats; lost after `lost_after` seconds."""
        seen = self.seen(node_name)
        if seen is None:
            return "stale"
        silent = self.clock.monotonic() - seen
        if silent > self._settings.lost_after:
            return "lost"
        return "ready" if silent <= 3 * self._settings.heartbeat else "stale"

    def wanted(self, node_name: str) -> Wanted:
        """All slots of one node by name, with how each last ended."""
        picture = self.picture
        version = picture.node(node_name).version
        names = sorted(picture.slots.get(node_name, {}))
        return Wanted(node_name, version, tuple(self._slot(picture, node_name, name) for name in names))

    def inputs(self, node_name: str) -> dict[str, int]:
        """How often each input of a node's processors has changed that its agent cannot see changing by itself.

        For processors of scope cluster: on any node. For those of scope node: what programs write about this node.
        """
        picture = self.picture
        found: dict[str, int] = {}
        for data_name, wish in picture.slots.get(node_name, {}).items():
            producer = picture.producers[data_name]
            if not producer.inputs or not wish.running:
                continue
            if producer.scope is Scope.CLUSTER:
                found |= {name: self.board.changes(name) for name in producer.inputs}
            else:
                found |= self._written(picture, node_name, producer.inputs)
        return found

    def _written(self, picture: Picture, node_name: str, names: Sequence[str]) -> dict[str, int]:
        """How often programs have written each of these names about a node."""
        programs = [name for name in names if picture.producers[name].kind is Kind.PROGRAM]
        cells = {name: self.board.find(name, node_name) for name in programs}
        return {name: cell.sequence if cell else 0 for name, cell in cells.items()}

    def slot(self, node_name: str, data_name: str) -> Slot:
        """One slot of a node."""
        return self._slot(self.picture, node_name, data_name)

    def data(self, data_name: str, node: str | None = None, max_age: float | None = None) -> list[Datum]:
        """The values of one name by node, those older than `max_age` seconds left out."""
        producer = self.picture.producer(data_name)
        rows = self.board.rows(data_name)
        found = [self._datum(producer, name, row) for name, row in rows if node in (None, name)]
        return [datum for datum in found if max_age is None or (datum.age is not None and datum.age <= max_age)]

    def datum(self, data_name: str, node_name: str) -> Datum:
        """One value; NotFound when nothing has been written there."""
        producer = self.picture.producer(data_name)
        return self._datum(producer, node_name, self.board.value(data_name, node_name))

    def _node(self, node_name: str, machine: Machine) -> Node:
        seen = self.seen(node_name)
        when = None if seen is None else self.clock.wall() - (self.clock.monotonic() - seen)
        return Node(node_name, machine.address, self.state(node_name), when, machine.agent_version, machine.dropped)

    def _datum(self, producer: Producer, node_name: str, row: Value) -> Datum:
        age = None if row.measured is None else max(0.0, self.clock.monotonic() - row.measured)
        ttl = float(producer.ttl or 0.0)
        state = state_of(row.outcome, age, ttl)
        return Datum(producer.data_name, node_name, row.text, age, ttl, state, row.outcome, row.reason, producer.unit)

    def _slot(self, picture: Picture, node_name: str, data_name: str) -> Slot:
        wish = picture.wish(node_name, data_name)
        producer = picture.producer(data_name)
        slot = {
            "data_name": data_name,
            "cmd": producer.cmd,
            "interval": producer.time_max if wish.interval is None else wish.interval,
            "timeout": producer.timeout,
            "running": wish.running,
            "sha256": producer.sha256,
            "scope": producer.scope,
            "emits": producer.emits,
            "inputs": producer.inputs,
            "epoch": wish.epoch,
        }
        last = self.board.find(data_name, node_name)
        if last is not None:
            age = max(0.0, self.clock.monotonic() - last.ran)
            slot |= {"outcome": last.outcome, "duration": last.duration, "reason": last.reason, "age": age}
            slot["skipped"] = last.skipped
        return Slot.from_json(slot)
