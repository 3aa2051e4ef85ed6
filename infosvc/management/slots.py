"""Starts, stops, re-times and removes slots: each function refuses first and then changes the transaction.

A node's wanted version grows with every change of its slots.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from infosvc.state.configuration import SlotRequest
from infosvc.state.transaction import Transaction
from infosvc.wire.errors import Conflict
from infosvc.wire.records import Outcome


def put_slot(transaction: Transaction, node_name: str, data_name: str, slot_request: SlotRequest) -> bool:
    """Start, stop or re-time a producer on a node; returns whether the slot is new."""
    transaction.configuration.node(node_name)
    producer = transaction.configuration.producer(data_name)
    if not producer.kind.in_slot:
        raise Conflict(
            f"{data_name} is of kind {producer.kind}, so no slot can run it",
            "data_name",
            remedy=("start the producer that emits it, or give it --kind collector or processor and a --cmd first"),
        )
    old = transaction.configuration.slots.get(node_name, {}).get(data_name)
    if old != slot_request:
        transaction.put("slots", (node_name, data_name), slot_request)
        transaction.bump(node_name)
    return old is None


def lift(transaction: Transaction, node_name: str, data_name: str) -> None:
    """End the quarantine of a slot; its agent starts it afresh, and until then it counts as failed."""
    slot_request = transaction.configuration.slot_request(node_name, data_name)
    put_slot(transaction, node_name, data_name, replace(slot_request, running=True, epoch=slot_request.epoch + 1))
    value = transaction.value(data_name, node_name)
    if value is not None and value.outcome is Outcome.QUARANTINED:
        transaction.values[data_name, node_name] = msgspec.structs.replace(value, outcome=Outcome.FAILED)


def delete_slot(transaction: Transaction, node_name: str, data_name: str) -> None:
    """Remove a slot; its value stays and grows old."""
    transaction.configuration.slot_request(node_name, data_name)
    transaction.put("slots", (node_name, data_name), None)
    transaction.bump(node_name)


def set_slot(transaction: Transaction, node_name: str, data_name: str, running: bool, interval: float | None) -> bool:
    """Start, stop or re-time a producer on the node that somebody named, where it stays from then on.

    Returns whether the slot is new; `interval` in seconds, None for the producer's time_max.
    """
    old = transaction.configuration.slots.get(node_name, {}).get(data_name)
    return put_slot(transaction, node_name, data_name, SlotRequest(running, interval, old.epoch if old else 0))


def lift_slot(transaction: Transaction, node_name: str, data_name: str, interval: float | None) -> bool:
    """End a slot's quarantine and run it, every `interval` seconds if that is given; never makes a slot."""
    slot_request = transaction.configuration.slot_request(node_name, data_name)
    if interval is not None:
        put_slot(transaction, node_name, data_name, replace(slot_request, interval=interval))
    lift(transaction, node_name, data_name)
    return False
