"""What the application master knows when it plans: one snapshot of pictures, nodes, values, speeds and terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hadoop.blocks import list_files
from hadoop.filesystem import FileSystem
from hadoop.listing import Listing
from hadoop.yarn import Yarn
from infosvc.client import InfoClient
from infosvc.errors import InfoError, InvalidInput
from infosvc.records import Datum, Kind, Producer, State
from jobs import history
from jobs.capability import Capability, wait
from jobs.decision import Judgement, Reading
from jobs.errors import JobError
from jobs.placement.terms import known_terms
from jobs.settings import JobSettings
from locality.types import Block, Terms

VALUE_SECONDS = 10.0
"""How long a value may be overdue before the job gives up: starting here kept the node from measuring."""
CONFIDENCE = ".confidence"
"""What follows a data name in the name of its confidence."""
JSON = "json"
"""The unit of values that are objects."""


@dataclass(frozen=True)
class Knowledge:
    """One snapshot: the pictures and where they are, values and speeds of the nodes, the terms.

    `values` decide; `judgements` has, by data name, them and whatever else the nodes could have been judged by.
    """

    blocks: Sequence[Block]
    values: Mapping[str, Capability]
    judgements: Mapping[str, Judgement]
    speeds: Mapping[str, float]
    terms: Terms

    def numbers(self) -> dict[str, float]:
        """The capability of each node."""
        return {node_name: value.number() for node_name, value in self.values.items()}


def know(filesystem: FileSystem, client: InfoClient, settings: JobSettings) -> Knowledge:
    """Blocks from HDFS in bulk, nodes from YARN, everything else from the information service."""
    files = list(list_files(filesystem, settings.input))
    if not files:
        raise JobError(f"{settings.input} holds no files: `nodewise images load` puts pictures there")
    yarn = Yarn()
    nodes = yarn.running_nodes()
    yarn.close()
    values = wait(client, settings.capability, nodes, VALUE_SECONDS)
    speeds = history.recorded(client, settings.engine, settings.batch)
    return Knowledge(
        blocks=[Block(file.path, 1, file.size_bytes, file.hosts()) for file in files],
        values=values,
        judgements=judgements(client, settings.capability, values),
        speeds={node: speed for node, speed in speeds.items() if node in values},
        terms=known_terms(client, Listing(filesystem).racks(), _say),
    )


def judgements(client: InfoClient, capability: str, values: Mapping[str, Capability]) -> dict[str, Judgement]:
    """By data name, the `values` of the capability that decides, and what else judges these nodes."""
    return {capability: _chosen(client, capability, values), **_others(client, capability, values)}


def _say(line: str) -> None:
    print(line, flush=True)


def _chosen(client: InfoClient, data_name: str, values: Mapping[str, Capability]) -> Judgement:
    readings = {node: _reading(value, value.confidence) for node, value in values.items()}
    return _judgement(client.producer(data_name), readings)


def _others(client: InfoClient, capability: str, nodes: Iterable[str]) -> dict[str, Judgement]:
    """Every other fresh number of these nodes that a processor or a program has brought, so that it can be tried.

    What cannot be read now is left out: nobody asked for it, and the plan does not need it. What is JSON is not even
    read: it is no number, and can be long.
    """
    producers = {producer.data_name: producer for producer in client.producers()}
    names = [name for name, one in producers.items() if _can_judge(one) and name != capability]
    try:
        found = client.data_many([*names, *(name + CONFIDENCE for name in names if name + CONFIDENCE in producers)])
    except InfoError as error:
        _say(f"only {capability} is in the decision record, the others cannot be read: {error}")
        return {}
    return {
        name: _judgement(producers[name], readings)
        for name in names
        if (readings := _readings(found[name], found.get(name + CONFIDENCE, ()), set(nodes)))
    }


def _can_judge(producer: Producer) -> bool:
    return producer.kind in (Kind.PROCESSOR, Kind.PROGRAM) and producer.unit != JSON


def _readings(data: Iterable[Datum], confidences: Iterable[Datum], nodes: set[str]) -> dict[str, Reading]:
    trust = {datum.node_name: datum.number() for datum in confidences if _is_fresh_number(datum)}
    return {
        datum.node_name: _reading(datum, trust.get(datum.node_name))
        for datum in data
        if datum.node_name in nodes and _is_fresh_number(datum)
    }


def _is_fresh_number(datum: Datum) -> bool:
    try:
        datum.number()
    except InvalidInput:
        return False
    return datum.state is State.FRESH


def _reading(datum: Datum, confidence: float | None) -> Reading:
    return Reading(datum.number(), float(datum.age or 0.0), datum.state.value, confidence)


def _judgement(producer: Producer, readings: Mapping[str, Reading]) -> Judgement:
    return Judgement(producer.unit, producer.kind.value, producer.cmd, producer.help, readings)
