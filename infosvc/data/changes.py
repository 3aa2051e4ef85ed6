"""Everything that can be changed, each as a function of a draft that first refuses and then changes.

A node's wanted version grows with every change of its slots, or of a producer that one of them runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from infosvc.state.current_values import Value
from infosvc.state.transaction import Draft, Past, Point
from infosvc.wire.errors import Conflict, NotFound, PreconditionFailed
from infosvc.state.configuration import Machine, Wish
from infosvc.wire.records import Outcome, Producer, Receipt
from infosvc.registration.rules import materialised, refuse_contradictions, users_of
from infosvc.data.agent_report import Batch, Ran

# Versions of forgotten producers are never given again, so that no If-Match of theirs fits a later one.
_VERSIONS = "producer_version"


def put_producer(draft: Draft, producer: Producer, if_match: int | None) -> tuple[Producer, bool]:
    """Register or update, with a row for each name it emits; returns what is stored and whether it is new.

    PreconditionFailed guards `if_match`; Conflict and InvalidInput tell which other producer stands in the way.
    """
    old = draft.picture.producers.get(producer.data_name)
    _check_version(producer.data_name, old, if_match)
    refuse_contradictions(draft.picture, producer)
    for gone in set(old.emits if old else ()) - set(producer.emits):
        _forget_name(draft, gone)
    stored = _store_producer(draft, producer)
    for emitted in materialised(draft.picture, stored, old):
        _store_producer(draft, emitted)
    return stored, old is None


def delete_producer(draft: Draft, data_name: str, if_match: int | None) -> None:
    """Forget a producer and what it emits, its slots and its values; Conflict when others live on it."""
    producer = draft.picture.producer(data_name)
    _check_version(data_name, producer, if_match)
    users = users_of(draft.picture, data_name)
    if users:
        raise Conflict(
            f"{data_name} is needed by {', '.join(users)}: remove that first, or take the name out of it",
            "data_name",
        )
    for name in (data_name, *producer.emits):
        _forget_name(draft, name)


def put_node(draft: Draft, node_name: str, address: str, agent_version: str, first_version: int) -> bool:
    """Enrol a node or move it to another address; returns whether it is new.

    `first_version` is larger than any that an agent of a forgotten node of this name may still hold.
    """
    old = draft.picture.nodes.get(node_name)
    new = Machine(address, agent_version, first_version)
    if old is not None:
        version = agent_version or old.agent_version
        new = msgspec.structs.replace(old, address=address, agent_version=version)
    draft.put("nodes", (node_name,), new)
    return old is None


def delete_node(draft: Draft, node_name: str, now: float) -> None:
    """Forget a node, its slots and its values, and revoke its tokens at Unix second `now`."""
    draft.picture.node(node_name)
    draft.put("nodes", (node_name,), None)
    for data_name in list(draft.picture.slots.get(node_name, {})):
        draft.put("slots", (node_name, data_name), None)
    for cell in draft.cells(node_name=node_name):
        draft.values[cell] = None
    draft.forget.append(Past(None, node_name))
    for token_id, stored in list(draft.picture.tokens.items()):
        if stored.token.node_name == node_name and stored.token.revoked_at is None:
            gone = replace(stored, token=replace(stored.token, revoked_at=now))
            draft.put("tokens", (token_id,), gone)


def put_slot(draft: Draft, node_name: str, data_name: str, wish: Wish) -> bool:
    """Start, stop or re-time a producer on a node; returns whether the slot is new."""
    draft.picture.node(node_name)
    producer = draft.picture.producer(data_name)
    if not producer.kind.in_slot:
        raise Conflict(
            f"{data_name} is of kind {producer.kind}, so no slot can run it: "
            "start the producer that emits it, or give it --kind collector or processor and a --cmd first",
            "data_name",
        )
    old = draft.picture.slots.get(node_name, {}).get(data_name)
    if old != wish:
        draft.put("slots", (node_name, data_name), wish)
        _bump(draft, node_name)
    return old is None


def lift(draft: Draft, node_name: str, data_name: str) -> None:
    """End the quarantine of a slot; its agent starts it afresh, and until then it counts as failed."""
    wish = draft.picture.wish(node_name, data_name)
    put_slot(draft, node_name, data_name, replace(wish, running=True, epoch=wish.epoch + 1))
    value = draft.value(data_name, node_name)
    if value is not None and value.outcome is Outcome.QUARANTINED:
        draft.values[data_name, node_name] = msgspec.structs.replace(value, outcome=Outcome.FAILED)


def delete_slot(draft: Draft, node_name: str, data_name: str) -> None:
    """Remove a slot; its value stays and grows old."""
    draft.picture.wish(node_name, data_name)
    draft.put("slots", (node_name, data_name), None)
    _bump(draft, node_name)


def take_report(draft: Draft, node_name: str, batch: Batch, now: float, *, only_slots: bool = False) -> Receipt:
    """Take one batch of an agent, once; the receipt tells which wanted state is current. `now` is monotonic seconds.

    Runs of names that are no longer registered are left out; with `only_slots`, also those that no slot produces.
    """
    machine = draft.picture.node(node_name)
    receipt = Receipt(machine.version)
    seen = {"seen": now, "agent_version": batch.agent_version or machine.agent_version, "dropped": batch.dropped}
    if batch.boot != machine.boot or batch.sequence > machine.sequence:
        seen |= {"boot": batch.boot, "sequence": batch.sequence}
        slots = draft.picture.slots.get(node_name, {})
        for ran in batch.runs:
            if only_slots and ran.data_name not in slots:
                continue
            producer = draft.picture.producers.get(ran.data_name)
            if producer is not None:
                _take_run(draft, producer, node_name, ran, now)
    draft.put("nodes", (node_name,), msgspec.structs.replace(machine, **seen))
    return receipt


def put_value(draft: Draft, data_name: str, node_name: str, text: str, now: float) -> bool:
    """Write one value of a registered name; returns whether it is the first there."""
    producer = draft.picture.producer(data_name)
    first = draft.value(data_name, node_name) is None
    _set(draft, producer, node_name, Ran(data_name, Outcome.OK, None, value=text), text, now)
    return first


def delete_value(draft: Draft, data_name: str, node_name: str) -> None:
    """Forget one value; NotFound when there is none."""
    draft.picture.producer(data_name)
    if draft.value(data_name, node_name) is None:
        raise NotFound(f"{data_name} has no value on {node_name!r}: nothing to forget", "node_name")
    draft.values[data_name, node_name] = None
    draft.forget.append(Past(data_name, node_name))


def _take_run(draft: Draft, producer: Producer, node_name: str, ran: Ran, now: float) -> None:
    """One run: its own value, and one for each name that it emits, of which those not printed are 'no data'."""
    when = now - ran.age
    if not producer.emits:
        _set(draft, producer, node_name, ran, ran.value, when)
        return
    printed = ran.values or {}
    _set(draft, producer, node_name, ran, str(len(printed)) if ran.value is None else ran.value, when)
    for name in producer.emits:
        text = printed.get(name)
        part = ran
        if ran.outcome is Outcome.OK and text is None:
            part = Ran(name, Outcome.NO_DATA, ran.duration, reason=f"{producer.data_name} did not print it this time")
        _set(draft, draft.picture.producers[name], node_name, part, text, when)


def _set(draft: Draft, producer: Producer, node_name: str, ran: Ran, text: str | None, when: float) -> None:
    """One cell of the board; a run that brought nothing leaves the old value and its time."""
    cell = (producer.data_name, node_name)
    old = draft.value(*cell)
    sequence, skipped = (old.sequence + 1, old.skipped + ran.skipped) if old is not None else (1, ran.skipped)
    measured: float | None = when
    if ran.outcome is not Outcome.OK:
        text, measured = (old.text, old.measured) if old is not None else (None, None)
    elif producer.keep and text is not None:
        draft.points.append(Point(*cell, when, text))
    draft.values[cell] = Value(text, measured, ran.outcome, ran.reason, when, ran.duration, skipped, sequence)


def _store_producer(draft: Draft, producer: Producer) -> Producer:
    """Store what differs, under the next version; nodes that run it are told, and slots that cannot are removed."""
    name = producer.data_name
    old = draft.picture.producers.get(name)
    version = old.version if old else draft.picture.counters.get(_VERSIONS, 0)
    if old == replace(producer, version=version):
        return old
    stored = replace(producer, version=version + 1)
    draft.put("producers", (name,), stored)
    if old is not None and old.keep and not stored.keep:
        draft.forget.append(Past(name, None))
    for node_name in _nodes_with_slot(draft, name):
        if not stored.kind.in_slot:
            draft.put("slots", (node_name, name), None)
        _bump(draft, node_name)
    return stored


def _forget_name(draft: Draft, data_name: str) -> None:
    used = max(draft.picture.counters.get(_VERSIONS, 0), draft.picture.producers[data_name].version)
    draft.put("counters", (_VERSIONS,), used)
    draft.put("producers", (data_name,), None)
    draft.forget.append(Past(data_name, None))
    for node_name in _nodes_with_slot(draft, data_name):
        draft.put("slots", (node_name, data_name), None)
        _bump(draft, node_name)
    for cell in draft.cells(data_name):
        draft.values[cell] = None


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
    draft.put("nodes", (node_name,), msgspec.structs.replace(machine, version=machine.version + 1))
