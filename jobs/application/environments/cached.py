"""Which nodes have an environment already, and how soon the others would, by what the information service knows."""

from __future__ import annotations

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
from locality.cost import AccessCost, Basis


def find_all_ready(client: InfoClient, parts: Sequence[Part], nodes: Iterable[str]) -> dict[str, Ready]:
    """By node, when it has these parts; InfoError when the service does not answer, JobError for costs of no sense."""
    cached, cost = tell_cached(client), access_cost(client)
    return {node: find_ready(parts, cached.get(node), find_way(cost, node)) for node in nodes}


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


def find_way(cost: AccessCost, node: str) -> Way:
    """How fast a node reads what others hold: the median over these, as blocks of a file are anywhere."""
    figures = [cost.entry(node, other) for other in cost.nodes if other != node] or [cost.entry(node, "")]
    is_assumed = all(one.basis is Basis.ASSUMED for one in figures)
    return Way(median(one.bytes_per_second for one in figures), is_assumed)
