"""What the application master knows when it plans: one snapshot of items, nodes, values, speeds and terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Datum, Kind, Producer
from jobs.application.coordinator import Knowledge
from jobs.division import speed_history
from jobs.division.capability import JSON, is_fresh_number
from jobs.division.decision import CapabilityReadings, Decision, Reading
from jobs.division.readings import RECORDED, read_capability, reading, readings_of
from jobs.division.terms import known_terms
from jobs.errors import JobError
from jobs.itemwork.settings import ItemSettings
from jobs.itemwork.source import ItemSource
from locality.cost import AccessCost
from locality.program_names import is_start_name
from locality.types import Block, Terms

VALUE_SECONDS = 10.0
"""How long a value may be overdue before the job gives up: starting here kept the node from measuring."""
CONFIDENCE = ".confidence"
"""What follows a data name in the name of its confidence."""
FALLBACK = "fallback"
"""The state and the kind of capabilities that nobody measured."""


@dataclass(frozen=True)
class Snapshot:
    """One snapshot: the items and where they are, values and speeds of the nodes, the terms.

    `capabilities` has, by data name, the values that decide and whatever else the nodes could be compared by;
    `policy` divides: the one that was asked for, or the one in its place. `start_seconds` is after how long nodes can
    begin that cannot at once.
    """

    blocks: Sequence[Block]
    capabilities: Mapping[str, CapabilityReadings]
    speeds: Mapping[str, float]
    terms: Terms
    policy: str
    start_seconds: Mapping[str, float] = field(default_factory=dict)


def judge_nodes(knowledge: Knowledge, settings: ItemSettings) -> CapabilityReadings:
    """The nodes that YARN has, by the capability that decides, from the information service.

    Where that gives none, all nodes are alike to the policy that the user named for it, if any.
    """
    nodes = knowledge.nodes()
    try:
        return read_capability(knowledge.client, settings.capability, settings.program, nodes, VALUE_SECONDS)
    except (InfoError, JobError) as error:
        return _alike(settings, nodes, error)


def readings_of_record(body: Mapping[str, Any]) -> CapabilityReadings:
    """The readings of which `body` is what `asdict` has made."""
    return msgspec.convert(body, CapabilityReadings)


def know(
    knowledge: Knowledge, source: ItemSource, settings: ItemSettings, decides: CapabilityReadings | None = None
) -> Snapshot:
    """Blocks from the source, everything else from the information service; `decides` is what `judge_nodes` said.

    Where the service does not answer, all nodes are alike to the policy that the user named for it, if any.
    """
    decides = decides or judge_nodes(knowledge, settings)
    blocks, racks = source.blocks(settings.input), knowledge.racks()
    if decides.kind == FALLBACK:
        return _all_alike(blocks, racks, settings, decides)
    try:
        known = _from_service(knowledge.client, blocks, racks, settings, decides)
    except (InfoError, JobError) as error:
        able = [node for node, value in decides.numbers().items() if value > 0]  # others have no container
        return _all_alike(blocks, racks, settings, _alike(settings, able, error))
    return replace(known, start_seconds=_start_seconds(knowledge, settings, list(decides.nodes)))


def know_later(
    client: InfoClient, settings: ItemSettings, known: CapabilityReadings, nodes: Sequence[str]
) -> dict[str, float]:
    """What nodes can do that are new to a division, on the scale of those that it was made from; it waits for nothing.

    JobError or InvalidInput: one of them has no such value now. InfoError: the service gives no answer.
    """
    if known.kind == FALLBACK:
        return dict.fromkeys(nodes, 1.0)
    scale = list(known.nodes) if known.kind == RECORDED else []
    found = read_capability(client, settings.capability, settings.program, [*scale, *nodes], 0.0)
    return {node: found.nodes[node].value for node in nodes}


def _start_seconds(knowledge: Knowledge, settings: ItemSettings, nodes: Sequence[str]) -> Mapping[str, float]:
    """What cannot be known costs the plan some knowledge, never the job."""
    try:
        return knowledge.start_seconds(settings.parts, nodes, settings.program.name)
    except (HadoopError, InfoError, JobError) as error:
        _say(f"planned as if all nodes could begin at once: {error}")
        return {}


def _from_service(
    client: InfoClient,
    blocks: Sequence[Block],
    racks: Mapping[str, str],
    settings: ItemSettings,
    decides: CapabilityReadings,
) -> Snapshot:
    program = settings.program
    speeds = speed_history.recorded_speeds(client, program.name, program.batch)
    return Snapshot(
        blocks=blocks,
        capabilities=read_capabilities(client, settings.capability, decides),
        speeds={node: speed for node, speed in speeds.items() if node in decides.nodes},
        terms=known_terms(client, racks, _say),
        policy=settings.policy,
    )


def _alike(settings: ItemSettings, nodes: Iterable[str], why: Exception) -> CapabilityReadings:
    """Each node with a capability of one; raises `why` where the user has named no policy for this case."""
    if settings.fallback is None:
        raise why
    _say(f"{why}; divided by {settings.fallback} instead")
    return CapabilityReadings("", FALLBACK, "", str(why), {node: Reading(1.0, 0.0, FALLBACK) for node in nodes})


def _all_alike(
    blocks: Sequence[Block], racks: Mapping[str, str], settings: ItemSettings, alike: CapabilityReadings
) -> Snapshot:
    return Snapshot(
        blocks=blocks,
        capabilities={settings.capability: alike},
        speeds={},
        terms=Terms(AccessCost(racks=racks)),
        policy=str(settings.fallback),
    )


def note(decision: Decision) -> str:
    """What the report has to say of a division, whichever attempt made it: nothing if it is what was asked for."""
    readings, name = decision.readings, decision.capability
    if readings.kind == RECORDED:
        return readings.help
    if readings.kind != FALLBACK:
        return ""
    return f"Divided by {decision.policy} with all nodes alike, because there was no {name}: {readings.help}"


def read_capabilities(
    client: InfoClient, capability: str, decides: CapabilityReadings
) -> dict[str, CapabilityReadings]:
    """By data name, the capability that decides, and what else these nodes could be compared by."""
    return {capability: decides, **_others(client, capability, decides.nodes)}


def _say(line: str) -> None:
    print(line, flush=True)


def _others(client: InfoClient, capability: str, nodes: Iterable[str]) -> dict[str, CapabilityReadings]:
    """Every other fresh number of these nodes that a processor or a program has brought, so that it can be tried.

    What cannot be read now is left out: nobody asked for it, and the plan does not need it. What is JSON is not even
    read: it is not a number, and can be long.
    """
    producers = {producer.data_name: producer for producer in client.producers()}
    names = [name for name, one in producers.items() if _can_be_capability(one) and name != capability]
    try:
        values = client.data_many([*names, *(name + CONFIDENCE for name in names if name + CONFIDENCE in producers)])
    except InfoError as error:
        _say(f"only {capability} is in the decision record, the others cannot be read: {error}")
        return {}
    return {
        name: readings_of(producers[name], readings)
        for name in names
        if (readings := _readings(values[name], values.get(name + CONFIDENCE, ()), set(nodes)))
    }


def _can_be_capability(producer: Producer) -> bool:
    is_number = producer.kind in (Kind.PROCESSOR, Kind.PROGRAM) and producer.unit != JSON
    return is_number and not is_start_name(producer.data_name)  # of which less is better


def _readings(data: Iterable[Datum], confidences: Iterable[Datum], nodes: set[str]) -> dict[str, Reading]:
    trust = {datum.node_name: datum.number() for datum in confidences if is_fresh_number(datum)}
    return {
        datum.node_name: reading(datum, trust.get(datum.node_name))
        for datum in data
        if datum.node_name in nodes and is_fresh_number(datum)
    }
