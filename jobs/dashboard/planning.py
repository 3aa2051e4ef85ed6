"""What is shown of a path: where its blocks lie, what reading costs, and what each policy would do, before it runs."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from hadoop.client.blocks import StoredFile
from hadoop.client.snapshots import Snapshot
from infosvc.wire.errors import InfoError
from jobs.dashboard.values import Values, as_client
from jobs.division import capability as capabilities
from jobs.division.capability import Capability
from jobs.division.distribution import spread_of
from jobs.division.terms import known_terms
from jobs.errors import JobError
from locality.cost import AccessCost
from locality.policies import POLICIES
from locality.quality import measure_quality, optimum_of
from locality.types import Block, Part, PlanError, Terms

MOST_MISSING = 100
"""Files without a live replica that are named; all are counted."""
MOST_IN_MATRIX = 40


def path_view(found: Snapshot, running: Sequence[str], values: Values, capability: str | None) -> dict[str, Any]:
    """The whole answer; `running` are the nodes that take work. What keeps it from planning stands in `no_plans`."""
    files = list(found.files())
    said: list[str] = []
    terms = known_terms(as_client(values), found.racks, said.append)
    body = _placed_json(found, files, running)
    body["access_cost"] = matrix(terms.cost, [node["node_name"] for node in body["nodes"]]) | {"said": said}
    body |= {"capability": capability, "values": {}, "epsilon": terms.epsilon, "images": len(files)}
    try:
        judged = _read_capability(values, capability, running, files)
    except (InfoError, JobError) as error:
        return body | {"plans": [], "no_plans": str(error)}
    numbers = {node: datum.number() for node, datum in judged.items()}
    blocks = [Block(file.path, 1, file.size_bytes, file.hosts()) for file in files]
    body["values"] = {node: _value(datum) for node, datum in judged.items()}
    try:
        return body | {"plans": plans(blocks, numbers, terms), "no_plans": None}
    except PlanError as error:
        return body | {"plans": [], "no_plans": str(error)}


def plans(blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms) -> list[dict[str, Any]]:
    """Each policy's plan beside the bound and the fewest bytes; one that cannot has an `error` and nothing else.

    PlanError when the capability itself is unusable.
    """
    optimum = optimum_of(blocks, capability, terms)
    return [_plan(name, blocks, capability, terms, optimum) for name in POLICIES]


def matrix(cost: AccessCost, nodes: Sequence[str]) -> dict[str, Any]:
    """What each node pays for a byte of each other one; no entries for more nodes than can be looked at."""
    shown = sorted(nodes) if len(nodes) <= MOST_IN_MATRIX else []
    entries = [(reader, holder, cost.entry(reader, holder)) for reader, holder in product(shown, shown)]
    return {
        "measured": not cost.is_empty,
        "nodes": shown,
        "most_nodes": MOST_IN_MATRIX,
        "entries": [
            {
                "reader": reader,
                "holder": holder,
                "seconds_per_byte": entry.seconds_per_byte,
                "basis": entry.basis.value,
                "age_seconds": entry.age,
            }
            for reader, holder, entry in entries
        ],
    }


def replicas(files: Sequence[StoredFile]) -> list[dict[str, int]]:
    """How many blocks have how many live holders, the fewest first."""
    counted = Counter(len(block.hosts) for file in files for block in file.blocks)
    return [{"replicas": holders, "blocks": blocks} for holders, blocks in sorted(counted.items())]


def _placed_json(found: Snapshot, files: Sequence[StoredFile], running: Sequence[str]) -> dict[str, Any]:
    spreading = spread_of(found)
    nodes = {node.node_name: asdict(node) for node in spreading.nodes}
    for name in running:  # a node may take work and hold nothing, without a DataNode even
        nodes.setdefault(name, {"node_name": name, "rack": None, **dict.fromkeys(_COUNTS, 0), "held_ratio": 0.0})
    return {
        "state": "ready",
        "path": found.path,
        "listed_age_seconds": max(0.0, time.time() - found.listed_at),
        "files": found.file_count,
        "size_bytes": found.size_bytes,
        "blocks": spreading.blocks,
        "open_files": spreading.open_files,
        "erasure_coded_files": spreading.erasure_coded_files,
        "missing_files": len(spreading.missing),
        "missing": list(spreading.missing[:MOST_MISSING]),
        "replicas": replicas(files),
        "nodes": [row | {"takes_work": name in running} for name, row in sorted(nodes.items())],
    }


_COUNTS = ("blocks", "bytes", "files", "cached_bytes")


def _read_capability(
    values: Values, capability: str | None, running: Sequence[str], files: Sequence[StoredFile]
) -> dict[str, Capability]:
    if not capability:
        raise JobError("name a capability, such as perf_cpu, to see how each policy would divide the files by it")
    if not files:
        raise JobError("there is nothing to divide", remedy="`nodewise images load` puts images into HDFS")
    if not running:
        raise JobError("no node takes work now", remedy="`nodewise cluster status` tells which NodeManagers are up")
    return capabilities.wait(as_client(values), capability, running, 0.0)


def _value(datum: Capability) -> dict[str, Any]:
    return {
        "value": datum.number(),
        "unit": datum.unit,
        "age_seconds": datum.age,
        "state": datum.state.value,
        "confidence": datum.confidence,
    }


def _plan(
    name: str, blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms, optimum: int
) -> dict[str, Any]:
    try:
        started = time.perf_counter()
        plan = POLICIES[name](blocks, capability, terms)
        seconds = time.perf_counter() - started
        quality = measure_quality(plan, blocks, capability, terms, optimum)
    except PlanError as error:
        return {"policy": name, "error": str(error)}
    nodes = [_share(node, parts, capability[node]) for node, parts in sorted(plan.parts.items())]
    return {"policy": name, "error": None, **asdict(quality), "planning_seconds": seconds, "nodes": nodes}


def _share(node: str, parts: Sequence[Part], capability: float) -> dict[str, Any]:
    """What one node gets; its makespan is in seconds where the capability is in images per second."""
    local = [part for part in parts if part.is_local(node)]
    images = sum(part.items for part in parts)
    size_bytes = round(math.fsum(part.size_bytes for part in parts))
    local_bytes = round(math.fsum(part.size_bytes for part in local))
    return {
        "node_name": node,
        "images": images,
        "size_bytes": size_bytes,
        "local_images": sum(part.items for part in local),
        "moved_bytes": size_bytes - local_bytes,
        "makespan": images / capability if capability else 0.0,
    }
