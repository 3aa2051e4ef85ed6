"""Registers, updates and forgets producers: each function refuses first and then changes the transaction.

A node's wanted version grows with every change of a producer that one of its slots runs.
"""

from __future__ import annotations

from dataclasses import replace

from infosvc.registration.rules import emitted_producers, refuse_contradictions, users_of
from infosvc.state.transaction import Past, Transaction
from infosvc.wire.errors import Conflict, PreconditionFailed
from infosvc.wire.records import Producer

# Versions of forgotten producers are never given again, so that no If-Match of theirs fits a later one.
_VERSIONS = "producer_version"


def put_producer(transaction: Transaction, producer: Producer, if_match: int | None) -> tuple[Producer, bool]:
    """Register or update, with a row for each name it emits; returns what is stored and whether it is new.

    PreconditionFailed guards `if_match`; Conflict and InvalidInput tell which other producer stands in the way.
    """
    old = transaction.configuration.producers.get(producer.data_name)
    _check_version(producer.data_name, old, if_match)
    refuse_contradictions(transaction.configuration, producer)
    for gone in set(old.emits if old else ()) - set(producer.emits):
        _forget_name(transaction, gone)
    stored = _store_producer(transaction, producer)
    for emitted in emitted_producers(transaction.configuration, stored, old):
        _store_producer(transaction, emitted)
    return stored, old is None


def delete_producer(transaction: Transaction, data_name: str, if_match: int | None) -> None:
    """Forget a producer and what it emits, its slots and its values; Conflict when others live on it."""
    producer = transaction.configuration.producer(data_name)
    _check_version(data_name, producer, if_match)
    users = users_of(transaction.configuration, data_name)
    if users:
        raise Conflict(
            f"{data_name} is needed by {', '.join(users)}",
            "data_name",
            remedy="remove that first, or take the name out of it",
        )
    for name in (data_name, *producer.emits):
        _forget_name(transaction, name)


def _store_producer(transaction: Transaction, producer: Producer) -> Producer:
    """Store what differs, under the next version; nodes that run it are told, and slots that cannot are removed."""
    name = producer.data_name
    old = transaction.configuration.producers.get(name)
    version = old.version if old else transaction.configuration.counters.get(_VERSIONS, 0)
    if old == replace(producer, version=version):
        return old
    stored = replace(producer, version=version + 1)
    transaction.put("producers", (name,), stored)
    if old is not None and old.keep and not stored.keep:
        transaction.forget.append(Past(name, None))
    for node_name in transaction.nodes_with_slot(name):
        if not stored.kind.in_slot:
            transaction.put("slots", (node_name, name), None)
        transaction.bump(node_name)
    return stored


def _forget_name(transaction: Transaction, data_name: str) -> None:
    used = max(
        transaction.configuration.counters.get(_VERSIONS, 0), transaction.configuration.producers[data_name].version
    )
    transaction.put("counters", (_VERSIONS,), used)
    transaction.put("producers", (data_name,), None)
    transaction.forget.append(Past(data_name, None))
    for node_name in transaction.nodes_with_slot(data_name):
        transaction.put("slots", (node_name, data_name), None)
        transaction.bump(node_name)
    for cell in transaction.cells(data_name):
        transaction.values[cell] = None


def _check_version(data_name: str, old: Producer | None, if_match: int | None) -> None:
    if if_match is not None and (old is None or old.version != if_match):
        found = f"has version {old.version}" if old else "is not registered"
        raise PreconditionFailed(
            f"{data_name} {found}, not version {if_match} as If-Match says",
            "If-Match",
            remedy="read it again and repeat the change",
        )
