"""Everything that can be changed, each as a function of a draft that first refuses and then changes.

A node's wanted version grows with every change of its slots, or of a producer that one of them runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infosvc.errors import Conflict, PreconditionFailed
from infosvc.latest import Draft, Machine, Value, Wish
from infosvc.records import Kind, Outcome, Producer, Report, Run


def put_producer(draft: Draft, producer: Producer, if_match: int | None) -> tuple[Producer, bool]:
    """Register or update; returns what is stored and whether it is new. PreconditionFailed guards `if_match`."""
    old = draft.picture.producers.get(producer.data_name)
    _check_version(producer.data_name, old, if_match)
    if old == replace(producer, version=old.version if old else 0):
        return old, False
    stored = replace(producer, version=old.version + 1 if old else 1)
    draft.put("producers", (stored.data_name,), stored)
    for node_name in _nodes_with_slot(draft, stored.data_name):
        if stored.kind is Kind.PROGRAM:
            draft.put("slots", (node_name, stored.data_name), None)
        _bump(draft, node_name)
    return stored, old is None


def delete_producer(draft: Draft, data_name: str, if_match: int | None) -> None:
    """Forget a producer, its slots and its values."""
    _check_version(data_name, draft.picture.producer(data_name), if_match)
    draft.put("producers", (data_name,), None)
    for node_name in _nodes_with_slot(draft, data_name):
        draft.put("slots", (node_name, data_name), None)
        _bump(draft, node_name)
    for node_name in list(draft.picture.values.get(data_name, {})):
        draft.put("values", (data_name, node_name), None)


def put_node(draft: Draft, node_name: str, address: str, agent_version: str, first_version: int) -> bool:
    """Enrol a node or move it to another address; returns whether it is new.

    `first_version` is larger than any that an agent of a forgotten node of this name may still hold.
    """
    old = draft.picture.nodes.get(node_name)
    new = Machine(address, agent_version, first_version)
    if old is not None:
        new = replace(old, address=address, agent_version=agent_version or old.agent_version)
    draft.put("nodes", (node_name,), new)
    return old is None


def delete_node(draft: Draft, node_name: str) -> None:
    """Forget a node, its slots and its values."""
    draft.picture.node(node_name)
    draft.put("nodes", (node_name,), None)
    for data_name in list(draft.picture.slots.get(node_name, {})):
        draft.put("slots", (node_name, data_name), None)
    for data_name, rows in list(draft.picture.values.items()):
        if node_name in rows:
            draft.put("values", (data_name, node_name), None)


def put_slot(draft: Draft, node_name: str, data_name: str, wish: Wish) -> bool:
    """Start, stop or re-time a producer on a node; returns whether the slot is new."""
    draft.picture.node(node_name)
    if draft.picture.producer(data_name).kind is Kind.PROGRAM:
        raise Conflict(
            f"{data_name} is written by a program of its own (kind program), so no slot can run it: "
            "give it --kind collector or processor and a --cmd first",
            "data_name",
        )
    old = draft.picture.slots.get(node_name, {}).get(data_name)
    if old != wish:
        draft.put("slots", (node_name, data_name), wish)
        _bump(draft, node_name)
    return old is None


def delete_slot(draft: Draft, node_name: str, data_name: str) -> None:
    """Remove a slot; its value stays and grows old."""
    draft.picture.wish(node_name, data_name)
    draft.put("slots", (node_name, data_name), None)
    _bump(draft, node_name)


def take_report(draft: Draft, node_name: str, report: Report, now: float) -> int:
    """Take one batch of an agent, once; returns the version of the wanted state. `now` is monotonic seconds.

    Runs of names that are no longer registered are left out.
    """
    machine = draft.picture.node(node_name)
    seen = replace(machine, seen=now, agent_version=report.agent_version or machine.agent_version)
    if report.boot == machine.boot and report.sequence <= machine.sequence:
        draft.put("nodes", (node_name,), seen)
        return machine.version
    draft.put("nodes", (node_name,), replace(seen, boot=report.boot, sequence=report.sequence))
    for run in report.runs:
        if run.data_name in draft.picture.producers:
            _take_run(draft, node_name, run, now - run.age)
    return machine.version


def put_value(draft: Draft, data_name: str, node_name: str, data_value: str, now: float) -> bool:
    """Write one value of a registered name; returns whether it is the first there."""
    draft.picture.producer(data_name)
    first = node_name not in draft.picture.values.get(data_name, {})
    _take_run(draft, node_name, Run(data_name, Outcome.OK, 0.0, data_value), now, timed=False)
    return first


def delete_value(draft: Draft, data_name: str, node_name: str) -> None:
    """Forget one value."""
    draft.picture.value(data_name, node_name)
    draft.put("values", (data_name, node_name), None)


def _take_run(draft: Draft, node_name: str, run: Run, ran: float, *, timed: bool = True) -> None:
    """A run that brought nothing leaves the old value and its time."""
    old = draft.picture.values.get(run.data_name, {}).get(node_name)
    duration = run.duration if timed else None
    sequence = old.sequence + 1 if old else 1
    if run.outcome is Outcome.OK:
        row = Value(run.value, ran, run.outcome, run.reason, ran, duration, sequence)
    else:
        value, measured = (old.data_value, old.measured) if old else (None, None)
        row = Value(value, measured, run.outcome, run.reason, ran, duration, sequence)
    draft.put("values", (run.data_name, node_name), row)


def _check_version(data_name: str, old: Producer | None, if_match: int | None) -> None:
    if if_match is not None and (old is None or old.version != if_match):
        found = f"has version {old.version}" if old else "is not registered"
        raise PreconditionFailed(
            f"{data_name} {found}, not version {if_match} as If-Match says: read it again and repeat the change",
            "If-Match",
        )


def _nodes_with_slot(draft: Draft, data_name: str) -> list[str]:
    slots: Mapping[str, Mapping[str, Wish]] = draft.picture.slots
    return [node_name for node_name, names in slots.items() if data_name in names]


def _bump(draft: Draft, node_name: str) -> None:
    machine = draft.picture.nodes[node_name]
    draft.put("nodes", (node_name,), replace(machine, version=machine.version + 1))
