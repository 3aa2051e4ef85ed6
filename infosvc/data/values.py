"""Takes what agents report and what programs write into the transaction."""

from __future__ import annotations

import msgspec

from infosvc.state.transaction import Past, Point, Transaction
from infosvc.state.value import Value
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Outcome, Producer, Receipt, Report, Run


def take_report(
    transaction: Transaction, node_name: str, report: Report, now: float, *, only_slots: bool = False
) -> Receipt:
    """Take one batch of an agent, once; the receipt tells which wanted state is current. `now` is monotonic seconds.

    Runs of names that are no longer registered are left out; with `only_slots`, also those that no slot produces.
    """
    machine = transaction.configuration.node(node_name)
    receipt = Receipt(machine.version)
    seen = {"seen": now, "agent_version": report.agent_version or machine.agent_version, "dropped": report.dropped}
    if report.boot != machine.boot or report.sequence > machine.sequence:
        seen |= {"boot": report.boot, "sequence": report.sequence}
        slots = transaction.configuration.slots.get(node_name, {})
        for ran in report.runs:
            if only_slots and ran.data_name not in slots:
                continue
            producer = transaction.configuration.producers.get(ran.data_name)
            if producer is not None:
                _take_run(transaction, producer, node_name, ran, now)
    transaction.put("nodes", (node_name,), msgspec.structs.replace(machine, **seen))
    return receipt


def put_value(transaction: Transaction, data_name: str, node_name: str, text: str, now: float) -> bool:
    """Write one value of a registered name; returns whether it is the first there."""
    producer = transaction.configuration.producer(data_name)
    first = transaction.value(data_name, node_name) is None
    _set(transaction, producer, node_name, Run(data_name, Outcome.OK, None, value=text), text, now)
    return first


def delete_value(transaction: Transaction, data_name: str, node_name: str) -> None:
    """Forget one value; NotFound when there is none."""
    transaction.configuration.producer(data_name)
    if transaction.value(data_name, node_name) is None:
        raise NotFound(f"{data_name} has no value on {node_name!r}: nothing to forget", "node_name")
    transaction.values[data_name, node_name] = None
    transaction.forget.append(Past(data_name, node_name))


def _take_run(transaction: Transaction, producer: Producer, node_name: str, ran: Run, now: float) -> None:
    """One run: its own value, and one for each name that it emits, of which those not printed are 'no data'."""
    when = now - ran.age
    if not producer.emits:
        _set(transaction, producer, node_name, ran, ran.value, when)
        return
    printed = ran.values or {}
    _set(transaction, producer, node_name, ran, str(len(printed)) if ran.value is None else ran.value, when)
    for name in producer.emits:
        text = printed.get(name)
        part = ran
        if ran.outcome is Outcome.OK and text is None:
            part = Run(name, Outcome.NO_DATA, ran.duration, reason=f"{producer.data_name} did not print it this time")
        _set(transaction, transaction.configuration.producers[name], node_name, part, text, when)


def _set(transaction: Transaction, producer: Producer, node_name: str, ran: Run, text: str | None, when: float) -> None:
    """One cell of the current values; a run that brought nothing leaves the old value and its time."""
    cell = (producer.data_name, node_name)
    old = transaction.value(*cell)
    sequence, skipped = (old.sequence + 1, old.skipped + ran.skipped) if old is not None else (1, ran.skipped)
    measured: float | None = when
    if ran.outcome is not Outcome.OK:
        text, measured = (old.text, old.measured) if old is not None else (None, None)
    elif producer.keep and text is not None:
        transaction.points.append(Point(*cell, when, text))
    transaction.values[cell] = Value(text, measured, ran.outcome, ran.reason, when, ran.duration, skipped, sequence)
