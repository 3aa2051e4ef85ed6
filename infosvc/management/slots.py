"""Starts, stops, re-times and removes slots: each function refuses first and then changes the draft.

A node's wanted version grows with every change of its slots.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from infosvc.state.configuration import Wish
from infosvc.state.transaction import Draft
from infosvc.wire.errors import Conflict
from infosvc.wire.records import Outcome


def put_slot(draft: Draft, node_name: str, data_name: str, wish: Wish) -> bool:
    """Start, stop or re-time a producer on a node; returns whether the slot is new."""
    draft.picture.node(node_name)
    producer = draft.picture.producer(data_name)
    if not producer.kind.in_slot:
        raise Conflict(
            f"{data_name} is of kind {producer.kind}, so no slot can run it",
            "data_name",
            remedy=("start the producer that emits it, or give it --kind collector or processor and a --cmd first"),
        )
    old = draft.picture.slots.get(node_name, {}).get(data_name)
    if old != wish:
        draft.put("slots", (node_name, data_name), wish)
        draft.bump(node_name)
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
    draft.bump(node_name)


def set_slot(draft: Draft, node_name: str, data_name: str, running: bool, interval: float | None) -> bool:
    """Start, stop or re-time a producer on the node that somebody named, where it stays from then on.

    Returns whether the slot is new; `interval` in seconds, None for the producer's time_max.
    """
    old = draft.picture.slots.get(node_name, {}).get(data_name)
    return put_slot(draft, node_name, data_name, Wish(running, interval, old.epoch if old else 0))


def lift_slot(draft: Draft, node_name: str, data_name: str, interval: float | None) -> bool:
    """End a slot's quarantine and run it, every `interval` seconds if that is given; never makes a slot."""
    wish = draft.picture.wish(node_name, data_name)
    if interval is not None:
        put_slot(draft, node_name, data_name, replace(wish, interval=interval))
    lift(draft, node_name, data_name)
    return False
