"""Whatever is changed in whatever order: the database says the same as memory, and both what a plain model says."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from infosvc.data.values import put_value, take_report
from infosvc.management import cluster_slots
from infosvc.management.nodes import delete_node, put_node
from infosvc.management.slots import delete_slot, set_slot
from infosvc.registration.producers import delete_producer, put_producer
from infosvc.settings import Ack, Clock, Settings
from infosvc.state.configuration import Configuration
from infosvc.state.current_values import CurrentValues
from infosvc.state.database import Database, parse_url
from infosvc.state.transaction import Transaction
from infosvc.state.value import Value
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Outcome, Producer, Report, Run, Scope

NAMES = st.sampled_from("abc")
EMITTED = st.lists(st.sampled_from("xy"), unique=True, max_size=2)
NODES = st.sampled_from(["n1", "n2", "n3"])
TEXTS = st.sampled_from(["0", "1", "é"])
OUTCOMES = st.sampled_from([Outcome.OK, Outcome.OK, Outcome.NO_DATA, Outcome.FAILED, Outcome.QUARANTINED])

Seen = tuple[str | None, Outcome]


class Model:
    """The rules, written down once more as plainly as can be."""

    def __init__(self) -> None:
        self.producers: dict[str, Producer] = {}
        self.versions: dict[str, int] = {}  # of wanted states, by node
        self.nodes: set[str] = set()
        self.slots: dict[tuple[str, str], bool] = {}  # started by name: whether they run
        self.placed: dict[str, set[str]] = {}
        self.values: dict[tuple[str, str], Seen] = {}
        self.taken: dict[str, tuple[str, int]] = {}  # boot and sequence of the last batch

    def owner(self, emitted: str) -> str | None:
        return next((found.data_name for found in self.producers.values() if emitted in found.emits), None)

    def names(self) -> set[str]:
        return {name for found in self.producers.values() for name in (found.data_name, *found.emits)}

    def forget_slots(self, gone: Callable[[str, str], bool]) -> None:
        self.slots = {key: value for key, value in self.slots.items() if not gone(*key)}
        kept = {name: {node for node in nodes if not gone(node, name)} for name, nodes in self.placed.items()}
        self.placed = {name: nodes for name, nodes in kept.items() if nodes}

    def forget_values(self, gone: Callable[[str, str], bool]) -> None:
        self.values = {cell: value for cell, value in self.values.items() if not gone(*cell)}

    def set_value(self, name: str, node: str, outcome: Outcome, text: str | None) -> None:
        old = self.values.get((name, node), (None, outcome))[0]
        self.values[name, node] = (text if outcome is Outcome.OK else old, outcome)


class Reloads(RuleBasedStateMachine):
    """One service without its HTTP, beside the model."""

    ack = Ack.DURABLE

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.now = 1000.0
        self.clock = Clock(lambda: self.now, lambda: self.now + 1_700_000_000.0)
        # Time is turned while values are stored behind their writers' backs: that is not a database that hangs.
        url = f"sqlite:///{self.directory}/infosvc.db"
        self.settings = Settings(database=url, ack=self.ack, patience=100.0)
        self.model = Model()
        self.start()

    def start(self) -> None:
        self.store = Database(parse_url(self.settings.database), self.clock)
        self.latest = Latest(*self.store.load(), self.settings, self.clock)
        self.writer = Writer(self.latest, self.store, self.settings, [])

    def write(self, change: Callable[[Transaction], Any], allowed: bool) -> None:
        """Make a change that the model allows, or see it refused."""
        self.now += 10
        if allowed:
            self.writer.write(change)
        else:
            with pytest.raises(InfoError):
                self.writer.write(change)

    def write_report(self, change: Callable[[Transaction], Any], allowed: bool) -> None:
        """The same for what an agent reports."""
        self.write(change, allowed)

    @initialize()
    def begin(self) -> None:
        """Most changes need a node and a producer to be more than refused."""
        for node in ("n1", "n2"):
            self.put_node(node)
        self.put_producer("a", ["x", "y"], Kind.COLLECTOR, 2)

    @rule(name=NAMES, emits=EMITTED, kind=st.sampled_from([Kind.COLLECTOR, Kind.PROGRAM]), replicas=st.integers(1, 3))
    def put_producer(self, name: str, emits: list[str], kind: Kind, replicas: int) -> None:
        """Of scope cluster, so that it may be placed; a program emits nothing."""
        emits = emits if kind.in_slot else []
        made = Producer(name, "x", 5.0, kind, Scope.CLUSTER, replicas, emits=tuple(emits), keep=replicas)
        allowed = all(self.model.owner(emitted) in (None, name) for emitted in emits)
        self.write(lambda transaction: put_producer(transaction, made, None), allowed)
        if allowed:
            before = self.model.producers.get(name, made).emits
            self.model.producers[name] = made
            self.model.forget_values(lambda data_name, _: data_name in before and data_name not in emits)
            self.model.forget_slots(lambda _, data_name: data_name == name and not kind.in_slot)

    @rule(name=NAMES | st.sampled_from("xy"))
    def delete_producer(self, name: str) -> None:
        """Nobody can delete what another emits."""
        allowed = name in self.model.producers
        self.write(lambda transaction: delete_producer(transaction, name, None), allowed)
        if allowed:
            gone = {name, *self.model.producers.pop(name).emits}
            self.model.forget_values(lambda data_name, _: data_name in gone)
            self.model.forget_slots(lambda _, data_name: data_name in gone)

    @rule(node=NODES)
    def put_node(self, node: str) -> None:
        first = int(self.clock.wall()) + 10
        self.write(lambda transaction: put_node(transaction, node, "127.0.0.1:1", "", first), True)
        self.model.nodes.add(node)

    @rule(node=NODES)
    def delete_node(self, node: str) -> None:
        allowed = node in self.model.nodes or any(at == node for _, at in self.model.values)
        self.write(lambda transaction: delete_node(transaction, node, self.clock.wall()), allowed)
        if allowed:
            self.model.nodes.discard(node)
            self.model.taken.pop(node, None)
            self.model.forget_values(lambda _, at: at == node)
            self.model.forget_slots(lambda at, _: at == node)

    @rule(node=NODES, name=NAMES | st.sampled_from("xy"), running=st.booleans())
    def put_slot(self, node: str, name: str, running: bool) -> None:
        producer = self.model.producers.get(name)
        allowed = node in self.model.nodes and producer is not None and producer.kind.in_slot
        self.write(lambda transaction: set_slot(transaction, node, name, running, None), allowed)
        if allowed:
            self.model.forget_slots(lambda at, data_name: (at, data_name) == (node, name))
            self.model.slots[node, name] = running

    @rule(node=NODES, name=NAMES)
    def delete_slot(self, node: str, name: str) -> None:
        there = (node, name) in self.model.slots or node in self.model.placed.get(name, ())
        self.write(lambda transaction: delete_slot(transaction, node, name), there)
        self.model.forget_slots(lambda at, data_name: (at, data_name) == (node, name))

    @rule(name=NAMES)
    def place(self, name: str) -> None:
        producer, here = self.model.producers.get(name), self.model.placed.get(name, set())
        free = {node for node in self.model.nodes if (node, name) not in self.model.slots} - here
        allowed = producer is not None and producer.kind.in_slot and bool(here or free)
        self.write(lambda transaction: cluster_slots.place(transaction, name, True, None, lambda _: True), allowed)
        if allowed and producer is not None:
            placed = set(cluster_slots.find_placed(self.latest.configuration, name))
            assert len(placed) == min(producer.replicas, len(here | free))
            assert placed <= here | free and (here <= placed or placed <= here)
            self.model.placed[name] = placed

    @rule(name=NAMES)
    def withdraw(self, name: str) -> None:
        self.write(
            lambda transaction: cluster_slots.withdraw(transaction, name), bool(self.model.placed.pop(name, None))
        )

    @rule(
        node=NODES,
        boot=st.sampled_from("pq"),
        sequence=st.integers(1, 4),
        name=NAMES,
        outcome=OUTCOMES,
        text=TEXTS,
        own=st.none() | TEXTS,
    )
    def report(
        self, node: str, boot: str, sequence: int, name: str, outcome: Outcome, text: str, own: str | None
    ) -> None:
        """A batch with one run, which prints x and never y if it emits, and then perhaps no value of its own."""
        emits = name in self.model.producers and self.model.producers[name].emits
        ran = Run(name, outcome, 0.5, value=own if emits else text, age=2.0, skipped=1, values={"x": text})
        batch = Report(boot, sequence, "1", (ran,))
        self.write_report(lambda transaction: take_report(transaction, node, batch, self.now), node in self.model.nodes)
        last_boot, last = self.model.taken.get(node, ("", 0))
        if node not in self.model.nodes or (boot == last_boot and sequence <= last):
            return
        self.model.taken[node] = (boot, sequence)
        producer = self.model.producers.get(name)
        if producer is not None:
            self.model.set_value(name, node, outcome, (own or "1") if producer.emits else text)
            for emitted in producer.emits:
                missing = emitted != "x" and outcome is Outcome.OK
                self.model.set_value(emitted, node, Outcome.NO_DATA if missing else outcome, text)

    @rule(name=NAMES | st.sampled_from("xy"), node=NODES, text=TEXTS)
    def put_value(self, name: str, node: str, text: str) -> None:
        known = name in self.model.names()
        self.write(lambda transaction: put_value(transaction, name, node, text, self.now), known)
        if known:
            self.model.set_value(name, node, Outcome.OK, text)

    @rule()
    def restart(self) -> None:
        self.stop()
        self.start()

    @invariant()
    def memory_is_as_the_model_says(self) -> None:
        configuration, current_values = self.latest.configuration, self.latest.current_values
        assert set(configuration.producers) == self.model.names()
        for name, made in self.model.producers.items():
            assert replace(configuration.producers[name], version=0) == made
        assert set(configuration.nodes) == self.model.nodes
        slot_requests = {
            (node, name): slot_request
            for node, slots in configuration.slots.items()
            for name, slot_request in slots.items()
        }
        assert {
            key: slot_request.running for key, slot_request in slot_requests.items() if not slot_request.placed
        } == self.model.slots
        placed = {(node, name) for name, nodes in self.model.placed.items() for node in nodes}
        assert {key for key, slot_request in slot_requests.items() if slot_request.placed} == placed
        seen = {cell: (value.text, value.outcome) for cell, value in _cells(current_values).items()}
        assert seen == self.model.values

    @invariant()
    def wanted_versions_only_grow(self) -> None:
        for node, machine in self.latest.configuration.nodes.items():
            assert machine.version >= self.model.versions.get(node, 0)
            self.model.versions[node] = machine.version

    @invariant()
    def the_database_says_the_same(self) -> None:
        if self.ack is Ack.DURABLE:
            stored, current_values = self.store.load()
            assert _plain(stored, current_values) == _plain(self.latest.configuration, self.latest.current_values)

    def stop(self) -> None:
        """Whatever was acknowledged is stored by then."""
        said = _plain(self.latest.configuration, self.latest.current_values)
        self.writer.close()
        assert _plain(*self.store.load()) == said
        self.store.close()

    def teardown(self) -> None:
        with suppress(AttributeError):  # when it could not even start
            self.stop()
        shutil.rmtree(self.directory)


class LaggingReloads(Reloads):
    """The same where values are acknowledged before they are stored."""

    ack = Ack.FAST
    lagged = 0

    def write_report(self, change: Callable[[Transaction], Any], allowed: bool) -> None:
        if allowed:
            self.now += 10
            self.writer.write_report(change)
            LaggingReloads.lagged += 1
        else:
            super().write_report(change, allowed)


def _cells(current_values: CurrentValues) -> dict[tuple[str, str], Value]:
    return {(name, node): value for name in current_values.names() for node, value in current_values.rows(name)}


def _plain(configuration: Configuration, current_values: CurrentValues) -> dict[str, Any]:
    """All that is known, times rounded to what survives the change from one clock to the other."""
    machines = {
        name: msgspec.structs.replace(machine, seen=machine.seen and round(machine.seen, 3))
        for name, machine in configuration.nodes.items()
    }
    values = {
        cell: msgspec.structs.replace(
            value, ran=round(value.ran, 3), measured=value.measured and round(value.measured, 3)
        )
        for cell, value in _cells(current_values).items()
    }
    slots = {node: slots for node, slots in configuration.slots.items() if slots}
    return {
        "producers": configuration.producers,
        "nodes": machines,
        "slots": slots,
        "values": values,
        "audit": configuration.audit,
    }


@pytest.mark.parametrize("machine", [Reloads, LaggingReloads])
def test_any_sequence_of_changes_is_found_again_in_the_database(machine: type[Reloads]) -> None:
    found = settings(
        deadline=None,
        max_examples=20,
        stateful_step_count=30,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        phases=[Phase.reuse, Phase.generate],  # a shorter failure would take minutes to find
    )
    run_state_machine_as_test(machine, settings=found)
    assert machine is Reloads or LaggingReloads.lagged > 0
