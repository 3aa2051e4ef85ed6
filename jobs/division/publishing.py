"""The distribution of blocks as data of the information service, for programs without Java.

The value of a node is JSON: path -> blocks and bytes that it holds whole, and `published_at` (Unix seconds), since the
age of the value is that of the path written last. A path older than the name's ttl goes with the next one written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Kind, Producer
from jobs.division.distribution import NodeShare
from jobs.errors import JobError

DATA_NAME = "block_distribution"
INTERVAL_SECONDS = 600.0
MOST_BYTES = 65_535  # the longest value that the service takes


def prepare(client: InfoClient) -> Producer:
    """Register the data name, unless it is known as one that programs write; the token must allow that."""
    try:
        known = client.producer(DATA_NAME)
    except NotFound:
        known = None
    if known and known.kind is Kind.PROGRAM:
        return known
    return client.put_producer(
        Producer(
            data_name=DATA_NAME,
            cmd="",
            time_max=INTERVAL_SECONDS,
            kind=Kind.PROGRAM,
            unit="json",
            help="blocks and bytes that a node holds whole of each HDFS path, and when it was published (Unix seconds)",
        )
    )


def lifetime_seconds(client: InfoClient, every: float | None = None) -> float:
    """How long a value is fresh, once the name is registered; JobError when one written each `every` seconds is not."""
    ttl_seconds = prepare(client).ttl or INTERVAL_SECONDS
    if every and every > ttl_seconds:
        raise JobError(
            f"--every {every:g} is longer than {DATA_NAME} stays fresh, {ttl_seconds:g} s, so readers "
            "would find it stale in between",
            remedy=f"give at most {ttl_seconds:g}",
        )
    return ttl_seconds


def publish(
    client: InfoClient, path: str, nodes: Iterable[NodeShare], enrolled: Collection[str], ttl_seconds: float
) -> list[str]:
    """Write what each enrolled node holds of a path, beside what was written of other paths in the last `ttl_seconds`.

    The value of a node is read, changed and written, so one program at a time may publish to a service. Returns the
    nodes that hold some of the path and are not enrolled: the service keeps no values of those. InfoError when the
    service refuses or is away, JobError when a value would be too long; then nothing is written.
    """
    now = time.time()
    held = {node.node_name: node for node in nodes}
    written = {datum.node_name: datum.data_value for datum in client.data(DATA_NAME)}
    values = {
        name: _to_value(name, recent(written.get(name), now - ttl_seconds) | {path: _facts(held.get(name), now)})
        for name in enrolled
    }
    for name, value in values.items():
        client.put_value(DATA_NAME, name, value)
    return [name for name, node in held.items() if node.blocks and name not in enrolled]


def recent(value: str | None, since: float) -> dict[str, dict[str, int]]:
    """The paths in a value that were published after a moment (Unix seconds); of a value in another form, none."""
    try:
        found = json.loads(value or "{}")
    except ValueError:
        return {}
    rows = found.items() if isinstance(found, dict) else ()
    return {path: facts for path, facts in rows if isinstance(facts, dict) and _published_at(facts) > since}


def _published_at(facts: dict[str, object]) -> float:
    at = facts.get("published_at")
    return at if isinstance(at, int | float) else float("-inf")


def _facts(node: NodeShare | None, now: float) -> dict[str, int]:
    # A node that is not named in the snapshot is known to hold nothing of the path.
    return {"blocks": node.blocks if node else 0, "bytes": node.bytes if node else 0, "published_at": int(now)}


def _to_value(name: str, paths: dict[str, dict[str, int]]) -> str:
    value = json.dumps(paths, separators=(",", ":"), sort_keys=True)
    if len(value) > MOST_BYTES:
        raise JobError(
            f"{DATA_NAME} of {name} would have {len(value)} bytes for {len(paths)} paths, and the service "
            f"accepts at most {MOST_BYTES}",
            remedy="publish a folder above them instead; a path that you stop publishing leaves the value by itself",
        )
    return value
