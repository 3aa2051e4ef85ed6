"""Where producers of scope cluster run: on as many nodes as they have replicas, which the service chooses.

The slots that it placed are all that is kept of a choice, so what a node should run is written in one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from infosvc.management.slots import delete_slot, lift_slot, put_slot
from infosvc.state.configuration import Configuration, SlotRequest
from infosvc.state.transaction import Transaction
from infosvc.wire.answers import Placement
from infosvc.wire.errors import Conflict, NotFound
from infosvc.wire.records import Producer, Scope

ANYWHERE = "*"  # in place of a node's name: wherever the service chooses

Is = Callable[[str], bool]


class Moves(NamedTuple):
    """The nodes that get a slot, and those that lose theirs."""

    to: tuple[str, ...]
    off: tuple[str, ...]


def find_placed(configuration: Configuration, data_name: str) -> dict[str, SlotRequest]:
    """The slots of a producer that the service placed, by node."""
    slot_requests = {node: slots[data_name] for node, slots in configuration.slots.items() if data_name in slots}
    return {node: slot_request for node, slot_request in sorted(slot_requests.items()) if slot_request.placed}


def placement(configuration: Configuration, data_name: str) -> Placement:
    """Where a producer is placed; NotFound when it is not."""
    producer, found = configuration.producer(data_name), find_placed(configuration, data_name)
    if not found:
        raise NotFound(
            f"{data_name} is not placed on any node",
            "data_name",
            remedy=f"start it with `nodewise slot start {data_name}`",
        )
    slot_request = next(iter(found.values()))
    interval = producer.time_max if slot_request.interval is None else slot_request.interval
    return Placement(data_name, ANYWHERE, slot_request.running, interval, producer.replicas, tuple(found))


def place(transaction: Transaction, data_name: str, running: bool, interval: float | None, is_ready: Is) -> bool:
    """Start, stop or re-time a producer wherever the service has placed it, or place it; returns whether that is new.

    Without a ready node, one that is not ready waits for it. Conflict when no node can take it.
    """
    producer, here = transaction.configuration.producer(data_name), find_placed(transaction.configuration, data_name)
    _refuse_other_scopes(producer)
    if not running:
        placement(transaction.configuration, data_name)
    moves = choose(transaction.configuration, producer, is_ready, _never) if running else Moves((), ())
    first = moves.to or tuple(_free(transaction.configuration, data_name, lambda _: True)[:1])
    if not here and not first:
        raise Conflict(
            f"no node can take {data_name}",
            "node_name",
            remedy=(
                "add one with `nodewise node add`, or see `nodewise slot list` for those where it was started by name"
            ),
        )
    for node_name, slot_request in here.items():
        put_slot(transaction, node_name, data_name, replace(slot_request, running=running, interval=interval))
    apply(transaction, data_name, moves if here else Moves(first, ()), SlotRequest(running, interval, placed=True))
    return not here


def withdraw(transaction: Transaction, data_name: str) -> None:
    """Remove all slots of a producer that the service placed; NotFound when there is none."""
    placement(transaction.configuration, data_name)
    for node_name in find_placed(transaction.configuration, data_name):
        delete_slot(transaction, node_name, data_name)


def lift(transaction: Transaction, data_name: str, interval: float | None) -> bool:
    """End the quarantine of all slots that the service placed, and re-time them if an interval is given."""
    placement(transaction.configuration, data_name)
    for node_name in find_placed(transaction.configuration, data_name):
        lift_slot(transaction, node_name, data_name, interval)
    return False


def choose(configuration: Configuration, producer: Producer, is_ready: Is, is_lost: Is) -> Moves:
    """What makes a producer run on `replicas` nodes again: ready ones with the fewest placed slots, then by name.

    A slot leaves a lost node only when another node takes it over; what stands on a node that lives is not moved.
    """
    here = find_placed(configuration, producer.data_name)
    standing = [node for node in here if not is_lost(node)]
    missing = max(0, producer.replicas - len(standing))
    to = _free(configuration, producer.data_name, is_ready)[:missing] if missing else []
    surplus = max(0, len(here) + len(to) - producer.replicas)
    leaving = [node for node in here if node not in standing] + standing[::-1]
    return Moves(tuple(to), tuple(leaving[:surplus]))


def apply(transaction: Transaction, data_name: str, moves: Moves, slot_request: SlotRequest) -> None:
    """Do what was chosen; `slot_request` is what the new slots get."""
    for node_name in moves.to:
        put_slot(transaction, node_name, data_name, slot_request)
    for node_name in moves.off:
        delete_slot(transaction, node_name, data_name)


def _free(configuration: Configuration, data_name: str, is_ready: Is) -> Sequence[str]:
    """The nodes that could take a slot of this name, best first."""
    slots: Mapping[str, Mapping[str, SlotRequest]] = configuration.slots
    load = Counter(
        {
            node: sum(slot_request.placed for slot_request in slot_requests.values())
            for node, slot_requests in slots.items()
        }
    )
    free = [node for node in configuration.nodes if data_name not in slots.get(node, {}) and is_ready(node)]
    return sorted(free, key=lambda node: (load[node], node))


def _never(_node_name: str) -> bool:
    """Who starts or stops a producer moves nothing: that is the watchdog's, who has watched the nodes for a while."""
    return False


def _refuse_other_scopes(producer: Producer) -> None:
    name = producer.data_name
    if producer.scope is not Scope.CLUSTER:
        raise Conflict(
            f"{name} has scope node, so it runs on the nodes that are named",
            "node_name",
            remedy="give its nodes, or register it with scope cluster",
        )
    if not producer.kind.in_slot:
        raise Conflict(f"{name} is of kind {producer.kind}, so no slot can run it", "data_name")
