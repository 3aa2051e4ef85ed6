"""What is shown of a path: where its blocks lie, what reading costs, and what each policy would do, before it runs."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

from hadoop.client.blocks import StoredFile
from hadoop.client.snapshots import Snapshot
from infosvc.wire.errors import InfoError
from jobs.dashboard.path_answers import (
    MOST_MISSING,
    CapabilityValue,
    CostEntry,
    CostMatrix,
    FailedPlan,
    HoldingNode,
    NodePlan,
    PolicyPlan,
    ReplicaCount,
    ShownPath,
)
from jobs.dashboard.sources.values import Values, as_client
from jobs.division import capability as capabilities
from jobs.division.capability import Capability
from jobs.division.distribution import NodeShare, Spread, spread_of
from jobs.division.terms import known_terms
from jobs.errors import JobError
from locality.cost import AccessCost
from locality.policies import POLICIES
from locality.quality import measure_quality, optimum_of
from locality.types import Block, Part, PlanError, Terms

MOST_IN_MATRIX = 40

Plans = tuple[PolicyPlan | FailedPlan, ...]


def path_view(found: Snapshot, running: Sequence[str], values: Values, capability: str | None) -> ShownPath:
    """The whole answer; `running` are the nodes that take work. What keeps it from planning stands in `no_plans`."""
    files = list(found.files())
    said: list[str] = []
    terms = known_terms(as_client(values), found.racks, said.append)
    spreading = spread_of(found)
    nodes = _nodes(spreading, running)
    judged, made, no_plans = _make_plans(values, capability, running, files, terms)
    return ShownPath(
        path=found.path,
        listed_age_seconds=max(0.0, time.time() - found.listed_at),
        files=found.file_count,
        size_bytes=found.size_bytes,
        blocks=spreading.blocks,
        open_files=spreading.open_files,
        erasure_coded_files=spreading.erasure_coded_files,
        missing_files=len(spreading.missing),
        missing=tuple(spreading.missing[:MOST_MISSING]),
        replicas=replicas(files),
        nodes=nodes,
        access_cost=matrix(terms.cost, [node.node_name for node in nodes], said),
        capability=capability,
        values={node: _value(datum) for node, datum in judged.items()},
        epsilon=terms.epsilon,
        images=len(files),
        plans=made,
        no_plans=no_plans,
    )


def _make_plans(
    values: Values, capability: str | None, running: Sequence[str], files: Sequence[StoredFile], terms: Terms
) -> tuple[Mapping[str, Capability], Plans, str | None]:
    """By what each node is judged, each policy's plan, and why there is none."""
    judged: Mapping[str, Capability] = {}
    try:
        judged = _read_capability(values, capability, running, files)
        numbers = {node: datum.number() for node, datum in judged.items()}
        blocks = [Block(file.path, 1, file.size_bytes, file.hosts()) for file in files]
        return judged, plans(blocks, numbers, terms), None
    except (InfoError, JobError, PlanError) as error:
        return judged, (), str(error)


def plans(blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms) -> Plans:
    """Each policy's plan beside the bound and the fewest bytes, or why it has none.

    PlanError when the capability itself is unusable.
    """
    optimum = optimum_of(blocks, capability, terms)
    return tuple(_plan(name, blocks, capability, terms, optimum) for name in POLICIES)


def matrix(cost: AccessCost, nodes: Sequence[str], said: Sequence[str] = ()) -> CostMatrix:
    """What each node pays for a byte of each other one; no entries for more nodes than can be looked at."""
    shown = sorted(nodes) if len(nodes) <= MOST_IN_MATRIX else []
    entries = [(reader, holder, cost.entry(reader, holder)) for reader, holder in product(shown, shown)]
    return CostMatrix(
        measured=not cost.is_empty,
        nodes=tuple(shown),
        most_nodes=MOST_IN_MATRIX,
        said=tuple(said),
        entries=tuple(
            CostEntry(reader, holder, entry.seconds_per_byte, entry.basis.value, entry.age)
            for reader, holder, entry in entries
        ),
    )


def replicas(files: Sequence[StoredFile]) -> tuple[ReplicaCount, ...]:
    """How many blocks have how many live holders, the fewest first."""
    counted = Counter(len(block.hosts) for file in files for block in file.blocks)
    return tuple(ReplicaCount(holders, blocks) for holders, blocks in sorted(counted.items()))


def _nodes(spreading: Spread, running: Sequence[str]) -> tuple[HoldingNode, ...]:
    """Who holds blocks, and who takes work: that may be a node that holds nothing, without a DataNode even."""
    found = {name: NodeShare(name, None, 0, 0, 0, 0.0, 0) for name in running}
    found |= {node.node_name: node for node in spreading.nodes}
    return tuple(HoldingNode(**vars(node), takes_work=name in running) for name, node in sorted(found.items()))


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


def _value(datum: Capability) -> CapabilityValue:
    return CapabilityValue(datum.number(), datum.age or 0.0, datum.state.value, datum.confidence, unit=datum.unit)


def _plan(
    name: str, blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms, optimum: int
) -> PolicyPlan | FailedPlan:
    try:
        started = time.perf_counter()
        plan = POLICIES[name](blocks, capability, terms)
        seconds = time.perf_counter() - started
        quality = measure_quality(plan, blocks, capability, terms, optimum)
    except PlanError as error:
        return FailedPlan(name, str(error))
    nodes = tuple(_share(node, parts, capability[node]) for node, parts in sorted(plan.parts.items()))
    return PolicyPlan(**vars(quality), policy=name, planning_seconds=seconds, nodes=nodes)


def _share(node: str, parts: Sequence[Part], capability: float) -> NodePlan:
    """What one node gets; its makespan is in seconds where the capability is in images per second."""
    local = [part for part in parts if part.is_local(node)]
    images = sum(part.items for part in parts)
    size_bytes = round(math.fsum(part.size_bytes for part in parts))
    local_bytes = round(math.fsum(part.size_bytes for part in local))
    return NodePlan(
        node_name=node,
        images=images,
        size_bytes=size_bytes,
        local_images=sum(part.items for part in local),
        moved_bytes=size_bytes - local_bytes,
        makespan=images / capability if capability else 0.0,
    )
