"""What readers ask, answered from the configuration and the current values in the wire's records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from infosvc.settings import Clock, Settings
from infosvc.state.configuration import Configuration, Machine
from infosvc.state.current_values import CurrentValues
from infosvc.state.value import Value, state_of
from infosvc.wire.records import Datum, Kind, Node, Producer, Scope, Slot, Wanted


class Latest:
    """What readers ask, answered from the current configuration and the current values in the wire's records."""

    def __init__(
        self, configuration: Configuration, current_values: CurrentValues, settings: Settings, clock: Clock
    ) -> None:
        self.configuration = configuration
        self.current_values = current_values
        # When each agent was last heard, in monotonic seconds; younger than what is stored while the database is away.
        self.heard: dict[str, float] = {}
        # From when on each agent that was never heard is waited for.
        self._awaited: dict[str, float] = {}
        self.clock = clock
        self._settings = settings

    def producers(self) -> list[Producer]:
        """All producers by name."""
        return [row for _, row in sorted(self.configuration.producers.items())]

    def nodes(self) -> list[Node]:
        """All nodes by name."""
        configuration = self.configuration
        return [self._node(name, machine) for name, machine in sorted(configuration.nodes.items())]

    def node(self, node_name: str) -> Node:
        """One node; `last_seen` in Unix seconds."""
        return self._node(node_name, self.configuration.node(node_name))

    def last_seen(self, node_name: str) -> float | None:
        """When a node was last heard of, in monotonic seconds; None when it never was."""
        machine = self.configuration.nodes.get(node_name)
        times = (machine.seen if machine else None, self.heard.get(node_name))
        return max((at for at in times if at is not None), default=None)

    def state(self, node_name: str) -> str:
        """ready; stale before the first report or after three silent heartbeats; lost after `lost_after` seconds."""
        now, seen = self.clock.monotonic(), self.last_seen(node_name)
        silent = now - (self._awaited.setdefault(node_name, now) if seen is None else seen)
        if silent > self._settings.lost_after:
            return "lost"
        return "ready" if seen is not None and silent <= 3 * self._settings.heartbeat else "stale"

    def forget_node(self, node_name: str) -> None:
        """A node of this name that is enrolled later is another one."""
        self.heard.pop(node_name, None)
        self._awaited.pop(node_name, None)

    def wanted(self, node_name: str) -> Wanted:
        """All slots of one node by name, with how each last ended."""
        configuration = self.configuration
        version = configuration.node(node_name).version
        names = sorted(configuration.slots.get(node_name, {}))
        return Wanted(node_name, version, tuple(self._slot(configuration, node_name, name) for name in names))

    def inputs(self, node_name: str) -> dict[str, int]:
        """How often each input of a node's processors has changed that its agent cannot see changing by itself.

        For processors of scope cluster: on any node. For those of scope node: what programs write about this node.
        """
        configuration = self.configuration
        found: dict[str, int] = {}
        for data_name, slot_request in configuration.slots.get(node_name, {}).items():
            producer = configuration.producers[data_name]
            if not producer.inputs or not slot_request.running:
                continue
            if producer.scope is Scope.CLUSTER:
                found |= {name: self.current_values.changes(name) for name in producer.inputs}
            else:
                found |= self._count_writes(configuration, node_name, producer.inputs)
        return found

    def _count_writes(self, configuration: Configuration, node_name: str, names: Sequence[str]) -> dict[str, int]:
        """How often programs have written each of these names about a node."""
        programs = [name for name in names if configuration.producers[name].kind is Kind.PROGRAM]
        cells = {name: self.current_values.find(name, node_name) for name in programs}
        return {name: cell.sequence if cell else 0 for name, cell in cells.items()}

    def slot(self, node_name: str, data_name: str) -> Slot:
        """One slot of a node."""
        return self._slot(self.configuration, node_name, data_name)

    def data(self, data_name: str, node: str | None = None, max_age: float | None = None) -> list[Datum]:
        """The values of one name by node, those older than `max_age` seconds left out."""
        return list(self.iter_data(data_name, self.rows(data_name, node, max_age)))

    def rows(
        self, data_name: str, node: str | None = None, max_age: float | None = None, after: str = ""
    ) -> list[tuple[str, Value]]:
        """The values of one name as they are kept, by node, those up to the node `after` left out as well."""
        found, now = self.current_values.rows(data_name, node), self.clock.monotonic()
        return [
            (name, value)
            for name, value in found
            if name > after
            and (max_age is None or (value.measured is not None and max(0.0, now - value.measured) <= max_age))
        ]

    def iter_data(self, data_name: str, rows: Iterable[tuple[str, Value]]) -> Iterator[Datum]:
        """Rows of one name as the wire shows them, each made when it is asked for."""
        producer = self.configuration.producer(data_name)
        return (self._datum(producer, name, value) for name, value in rows)

    def datum(self, data_name: str, node_name: str) -> Datum:
        """One value; NotFound when nothing has been written there."""
        producer = self.configuration.producer(data_name)
        return self._datum(producer, node_name, self.current_values.value(data_name, node_name))

    def _node(self, node_name: str, machine: Machine) -> Node:
        seen = self.last_seen(node_name)
        when = None if seen is None else self.clock.wall() - (self.clock.monotonic() - seen)
        return Node(node_name, machine.address, self.state(node_name), when, machine.agent_version, machine.dropped)

    def _datum(self, producer: Producer, node_name: str, row: Value) -> Datum:
        age = None if row.measured is None else max(0.0, self.clock.monotonic() - row.measured)
        ttl = float(producer.ttl or 0.0)
        state = state_of(row.outcome, age, ttl)
        return Datum(producer.data_name, node_name, row.text, age, ttl, state, row.outcome, row.reason, producer.unit)

    def _slot(self, configuration: Configuration, node_name: str, data_name: str) -> Slot:
        slot_request = configuration.slot_request(node_name, data_name)
        producer = configuration.producer(data_name)
        slot = {
            "data_name": data_name,
            "cmd": producer.cmd,
            "interval": producer.time_max if slot_request.interval is None else slot_request.interval,
            "timeout": producer.timeout,
            "running": slot_request.running,
            "sha256": producer.sha256,
            "scope": producer.scope,
            "emits": producer.emits,
            "inputs": producer.inputs,
            "epoch": slot_request.epoch,
        }
        last = self.current_values.find(data_name, node_name)
        if last is not None:
            age = max(0.0, self.clock.monotonic() - last.ran)
            slot |= {"outcome": last.outcome, "duration": last.duration, "reason": last.reason, "age": age}
            slot["skipped"] = last.skipped
        return Slot.from_json(slot)
