"""Rules between producers: who may emit what, and that processors do not wait for each other in a circle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from infosvc.state.configuration import Configuration
from infosvc.wire.errors import Conflict, InvalidInput, PreconditionFailed
from infosvc.wire.records import Kind, Producer


def parents(configuration: Configuration) -> dict[str, Producer]:
    """Every name that is emitted, with the producer whose runs bring it."""
    return {name: found for found in configuration.producers.values() for name in found.emits}


def users_of(configuration: Configuration, data_name: str) -> list[str]:
    """Producers that cannot do without this name or what it emits: its parent, and processors that read it."""
    own = {data_name, *(configuration.producers[data_name].emits if data_name in configuration.producers else ())}
    others = [found for found in configuration.producers.values() if found.data_name not in own]
    return sorted(found.data_name for found in others if data_name in found.emits or own & set(found.inputs))


def emitted_producers(configuration: Configuration, parent: Producer, before: Producer | None) -> Iterator[Producer]:
    """The row of each name that a producer emits: timed as the parent, with the unit, help, ttl and keep it had."""
    for name in parent.emits:
        row = replace(parent, data_name=name, kind=Kind.EMITTED, emits=(), inputs=(), unit="", help="", version=0)
        old = configuration.producers.get(name)
        if old is not None:
            ttl = parent.ttl if before and old.ttl == before.ttl else old.ttl
            keep = parent.keep if before and old.keep == before.keep else old.keep
            row = replace(row, unit=old.unit, help=old.help, ttl=ttl, keep=keep)
        yield row


def refuse_known(configuration: Configuration, data_name: str) -> None:
    """PreconditionFailed when something is registered under this name already."""
    known = configuration.producers.get(data_name)
    if known is not None:
        raise PreconditionFailed(
            f"already registered: {data_name} has version {known.version} and runs {known.cmd or 'nothing'!r}; "
            "choose another name, change it with `nodewise producer put`, or remove it with `nodewise producer rm`",
            "If-None-Match",
        )


def refuse_contradictions(configuration: Configuration, producer: Producer) -> None:
    """InvalidInput or Conflict when a producer does not fit to the others, with the remedy."""
    emitters = parents(configuration)
    _refuse_if_emitted(configuration, producer, emitters.get(producer.data_name))
    _refuse_bad_emits(configuration, producer, emitters)
    _refuse_lost_inputs(configuration, producer)
    _refuse_bad_inputs(configuration, producer, emitters)


def _refuse_if_emitted(configuration: Configuration, producer: Producer, parent: Producer | None) -> None:
    if producer.kind is Kind.EMITTED and parent is None:
        raise InvalidInput(
            f"no producer emits {producer.data_name}, so it cannot be of kind emitted",
            "kind",
            remedy="register one that does",
        )
    if parent is not None and not _same_but_words(configuration.producers[producer.data_name], producer):
        raise Conflict(
            f"{producer.data_name} is emitted by {parent.data_name}: only its unit, help, ttl and keep can be changed; "
            f"change {parent.data_name}, or take the name out of its emits",
            "data_name",
        )


def _refuse_bad_emits(configuration: Configuration, producer: Producer, emitters: Mapping[str, Producer]) -> None:
    for name in producer.emits:
        other = emitters.get(name)
        if other is not None and other.data_name != producer.data_name:
            raise Conflict(f"{name} is emitted by {other.data_name} already", "emits", remedy="choose another name")
        if name == producer.data_name:
            raise InvalidInput(
                f"emits names {name} itself",
                "emits",
                remedy=f"leave it out, a line `{name} VALUE` is its own value without that",
            )
        if other is None and name in configuration.producers:
            raise Conflict(
                f"{name} is registered already as a producer of its own", "emits", remedy="choose another name"
            )


def _refuse_lost_inputs(configuration: Configuration, producer: Producer) -> None:
    """A name that is emitted no longer is forgotten, which nobody who reads it may be surprised by."""
    old = configuration.producers.get(producer.data_name)
    gone = set(old.emits if old else ()) - set(producer.emits)
    others = {found.data_name: found for found in configuration.producers.values()} | {producer.data_name: producer}
    users = sorted(name for name, found in others.items() if gone & set(found.inputs))
    if users:
        raise Conflict(
            f"{', '.join(sorted(gone))} cannot be left out of emits: {', '.join(users)} needs it as an input", "emits"
        )


def _same_but_words(old: Producer, new: Producer) -> bool:
    kept = replace(old, unit=new.unit, help=new.help, ttl=new.ttl, keep=new.keep)
    return replace(new, version=old.version) == kept


def _refuse_bad_inputs(configuration: Configuration, producer: Producer, emitters: Mapping[str, Producer]) -> None:
    for name in producer.inputs:
        if name not in configuration.producers and name not in (producer.data_name, *producer.emits):
            raise InvalidInput(f"the input {name!r} is not registered", "inputs", remedy="register it first")
    circle = _circle(configuration, producer, emitters)
    if circle:
        raise Conflict(f"inputs form a cycle: {' <- '.join(circle)}; take one out of inputs", "inputs")


def _circle(configuration: Configuration, producer: Producer, emitters: Mapping[str, Producer]) -> list[str]:
    """The way from a producer over inputs back to it, empty when there is none; without it there was no circle."""
    start = producer.data_name
    own = {start, *producer.emits}
    came_from: dict[str, str] = {}
    ahead = [producer]
    while ahead:
        reader = ahead.pop()
        for name in reader.inputs:
            maker = start if name in own else emitters[name].data_name if name in emitters else name
            if maker == start:
                return [start, *_way(came_from, reader.data_name, start), start]
            if maker not in came_from and maker in configuration.producers:
                came_from[maker] = reader.data_name
                ahead.append(configuration.producers[maker])
    return []


def _way(came_from: Mapping[str, str], end: str, start: str) -> list[str]:
    """The names from after `start` to `end`."""
    way: list[str] = []
    while end != start:
        way.append(end)
        end = came_from[end]
    return way[::-1]
