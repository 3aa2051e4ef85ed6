"""Brings the catalogue of what ships into the registration service, without undoing what people changed there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from infosvc.shipping.bundle import CatalogEntry, catalog
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict, InvalidInput, PreconditionFailed
from infosvc.wire.records import Kind, Producer, Scope

AT_ONCE = 16


@dataclass
class Registered:
    """What came of it: names that run on every node from the start, names that are registered otherwise than they
    ship, names whose own producers were forgotten to make room, and names that could not be registered with the
    reason."""

    autostart: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def register(client: InfoClient, update: bool = False) -> Registered:
    """Register what is missing; with `update`, also change what differs to what ships.

    An update forgets whatever else was registered under a name that a shipped producer emits: that producer, its slots
    and its values.
    """
    entries = catalog()
    known = {producer.data_name: producer for producer in client.producers()}
    done = Registered()

    def register_one(producer: Producer) -> None:
        try:
            _register(client, producer, known, update, done)
        except (Conflict, InvalidInput) as error:
            done.refused[producer.data_name] = str(error)

    # The service stores what comes at the same time in one go, which is much quicker than one after the other.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for turn in in_turns([entry.producer for entry in entries]):
            list(pool.map(register_one, turn))
    done.autostart = [name for name in _autostart(entries) if name in known]
    return done


def in_turns(producers: Iterable[Producer]) -> Iterator[list[Producer]]:
    """Groups, of which each needs only those before: its inputs, and the one that emits it."""
    by_name = {producer.data_name: producer for producer in producers}
    needs = {name: set(producer.inputs) & set(by_name) for name, producer in by_name.items()}
    for name, producer in by_name.items():
        for emitted in producer.emits:
            needs[emitted].add(name)
    sorter = TopologicalSorter(needs)
    sorter.prepare()
    while sorter.is_active():
        turn = sorter.get_ready()
        yield [by_name[name] for name in turn]
        sorter.done(*turn)


def _autostart(entries: Iterable[CatalogEntry]) -> list[str]:
    return [e.producer.data_name for e in entries if e.autostart and e.producer.scope is Scope.NODE]


def _register(
    client: InfoClient, producer: Producer, known: dict[str, Producer], update: bool, done: Registered
) -> None:
    """Register one unless it is there, and keep `known` as the service has it."""
    name = producer.data_name
    old = known.get(name)
    if producer.kind is Kind.EMITTED and not any(name in each.emits for each in list(known.values())):
        return  # its parent could not be registered, or is one of somebody's own
    if update:
        done.forgotten += _make_way(client, producer, known)
    # A name that a producer emits has neither unit nor help until somebody gives it some.
    bare = old is not None and old.kind is Kind.EMITTED and not (old.unit or old.help)
    if old is None or bare or (update and _differs(old, producer)):
        known[name] = _put(client, producer, new=old is None)
        old = known[name]
    if _differs(old, producer):
        done.differing.append(name)


def _put(client: InfoClient, producer: Producer, new: bool) -> Producer:
    """What is registered then: what somebody has registered since we asked is not overwritten."""
    if not new or producer.kind is Kind.EMITTED:  # its parent has just brought it along
        return client.put_producer(producer)
    try:
        return client.put_producer(producer, new=True)
    except PreconditionFailed:
        return client.producer(producer.data_name)


def _make_way(client: InfoClient, producer: Producer, known: dict[str, Producer]) -> list[str]:
    """Forget producers of their own whose names this one emits from now on; their names."""
    own = [name for name in producer.emits if name in known and known[name].kind is not Kind.EMITTED]
    for name in own:
        client.delete_producer(name)
        del known[name]
    return own


def _differs(old: Producer, new: Producer) -> bool:
    return replace(old, version=0) != replace(new, version=0)
