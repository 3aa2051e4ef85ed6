"""Which nodes have an environment already, and how soon the others would, by what the information service knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from environments.manifest import Part
from environments.ready import CACHED, Ready, Way, find_ready, read_cached
from environments.store import Store
from hadoop.client.filesystem import FileSystem
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import State
from jobs.application.environments.laid import Parts
from jobs.division.access_cost import access_cost
from locality.cost import AccessCost, Basis, Figure, Side


def find_all_ready(client: InfoClient, parts: Sequence[Part], nodes: Iterable[str]) -> dict[str, Ready]:
    """By node, when it has these parts; InfoError when the service does not answer, JobError for costs of no sense."""
    cached, cost = tell_cached(client), access_cost(client)
    ways = find_ways(cost, nodes)
    return {node: find_ready(parts, cached.get(node), way) for node, way in ways.items()}


def find_ready_seconds(
    client: InfoClient, filesystem: FileSystem, laid: Parts, nodes: Iterable[str]
) -> dict[str, float]:
    """Of the nodes that lack some of what containers get, the seconds until they have it; HadoopError, or as above."""
    if not laid:
        return {}
    parts = [Part(at, Store.sha256_of(path), filesystem.amount(path).size_bytes) for at, path in laid.items()]
    return {node: one.seconds for node, one in find_all_ready(client, parts, nodes).items() if one.seconds > 0}


def tell_cached(client: InfoClient) -> dict[str, dict[str, int]]:
    """The parts of each node that tells of them: bytes by the first digits of the hash; what is stale is left out."""
    try:
        told = client.data(CACHED)
    except NotFound:
        return {}
    read = {one.node_name: read_cached(one.data_value or "") for one in told if one.state is State.FRESH}
    return {node: parts for node, parts in read.items() if parts is not None}


def find_ways(cost: AccessCost, nodes: Iterable[str]) -> dict[str, Way]:
    """How fast each node reads what others hold: the median over these, as blocks of a file are anywhere.

    A node that was measured with half of the others or more goes by that; any other one gets what is sent to its rack,
    as far as it receives that. So it takes a time that grows as nodes, and not as pairs of nodes.
    """
    measured: dict[str, list[Figure]] = {}
    for reader, holder in cost.pairs:
        measured.setdefault(reader, []).append(cost.entry(reader, holder))
    nodes = list(nodes)
    sent = _find_sent(cost, {cost.rack(node) for node in nodes})
    in_rack = Counter(cost.rack(node) for node in cost.nodes)
    found: dict[str, Way] = {}
    for node in nodes:
        own, rack = measured.get(node, []), cost.rack(node)
        if own and 2 * len(own) >= len(cost.nodes) - 1:
            found[node] = _median_way(own)
        else:
            most_are_near = 2 * in_rack[rack] >= len(cost.nodes)
            found[node] = _find_slower(sent[rack], cost.side(Side(node, False, most_are_near)))
    return found


def _find_sent(cost: AccessCost, racks: Iterable[str]) -> dict[str, Way]:
    """How fast all nodes send to one of each rack."""
    holders = cost.nodes or ("",)
    sending = {(node, is_near): cost.sending(node, is_near) for node in holders for is_near in (True, False)}
    return {rack: _median_way([sending[node, cost.rack(node) == rack] for node in holders]) for rack in racks}


def _find_slower(sent: Way, received: Figure) -> Way:
    is_assumed = sent.is_assumed or received.basis is Basis.ASSUMED
    return Way(min(sent.bytes_per_second, received.bytes_per_second), is_assumed)


def _median_way(figures: Sequence[Figure]) -> Way:
    is_assumed = all(one.basis is Basis.ASSUMED for one in figures)
    return Way(median(one.bytes_per_second for one in figures), is_assumed)
