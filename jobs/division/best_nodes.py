"""Which nodes are the best at something, by any value that is registered for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infosvc.wire.client import InfoClient
from jobs.division.capability import wait

VALUE_SECONDS = 10.0
"""How long a value may be overdue before a job gives up that begins."""


def measure(
    client: InfoClient, capability: str, nodes: Sequence[str], wait_seconds: float = VALUE_SECONDS
) -> Mapping[str, float]:
    """The value of each node, the best one first, without those with none above 0; JobError when one is missing."""
    values = {node: value.number() for node, value in wait(client, capability, nodes, wait_seconds).items()}
    return {node: values[node] for node in sorted(nodes, key=lambda node: -values[node]) if values[node] > 0}
