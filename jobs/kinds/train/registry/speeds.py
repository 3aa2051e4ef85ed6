"""The speeds at which nodes train by a script: what is known of them before the first step, and what was learned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from jobs.division import speed_history
from jobs.division.capability import is_fresh_number
from learning.lead.calls import MOST
from locality.capability import guess

UNIT = "samples"


def first_values(
    client: InfoClient, speeds_name: str, cold_start: str | None, nodes: Collection[str]
) -> tuple[str, dict[str, float]]:
    """What nodes are judged by before their first step, and the value of each that has one; InfoError.

    These are the speeds that nodes had by this script; a node that has none is judged by the value of `cold_start`, on
    the scale of those that have both. Without any speed the values of `cold_start` stand alone.
    """
    known = speed_history.read(client, speeds_name)
    speeds = _usable({node: known[node].number() for node in nodes if node in known})
    measures = _measures(client, cold_start, nodes) if cold_start and len(speeds) < len(nodes) else {}
    if not speeds:
        return (cold_start or "", measures) if measures else ("", {})
    guesses = {node: guess(node, speeds, measures) for node in nodes if node not in speeds}
    return speeds_name, speeds | _usable({node: one.value for node, one in guesses.items() if one})


def learned(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Samples per second of computing, of each node that computed; `nodes` are those of the report.

    >>> learned({"a": {"samples": 30, "compute_seconds": 2.0}, "b": {"samples": 0, "compute_seconds": 0.0}})
    {'a': 15.0}
    """
    return {
        node: told["samples"] / told["compute_seconds"]
        for node, told in nodes.items()
        if told["samples"] > 0 and told["compute_seconds"] > 0
    }


def register(client: InfoClient, speeds_name: str) -> None:
    """Register the name of the speeds, unless it is known; InfoError when the token does not allow that."""
    script = speeds_name.partition(":")[2]
    speed_history.register(
        client, speeds_name, f"{UNIT}/second", f"Speed at which the node computed when {script} last trained"
    )


def _measures(client: InfoClient, data_name: str, nodes: Collection[str]) -> dict[str, float]:
    """What is fresh; a name that is not registered has no values."""
    try:
        known = client.data(data_name)
    except NotFound:
        return {}
    return _usable({one.node_name: one.number() for one in known if one.node_name in nodes and is_fresh_number(one)})


def _usable(values: Mapping[str, float]) -> dict[str, float]:
    """Those that members understand: whoever may write values may have written others."""
    return {node: value for node, value in values.items() if 1 / MOST <= value <= MOST}
