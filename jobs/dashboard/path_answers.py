"""What the board answers of a path of HDFS, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infosvc.wire.fields import Limits, answer_of, describe
from jobs.division.decision import Reading
from jobs.division.distribution import NodeShare
from jobs.division.explained import PlanQuality

MOST_MISSING = 100
"""Files without a live replica that are named; all are counted."""

_NODE = describe(example="127.0.1.11")
_PATH = describe("a file or folder of HDFS", example="/data/images")
_POLICY = describe(example="maxflow")


@dataclass(frozen=True)
class ListingPath:
    """A path whose blocks are being listed: ask again in a second."""

    path: str = field(metadata=_PATH)
    files: int = field(metadata=describe("found so far", example=9))
    listed: int = field(metadata=describe("files of these whose blocks are known", example=4))
    state: str = field(default="listing", metadata=describe(limits=Limits(choices=("listing",))))


@dataclass(frozen=True)
class ReplicaCount:
    """How many blocks have so many replicas."""

    replicas: int = field(metadata=describe("live holders of a block", example=2))
    blocks: int = field(metadata=describe("that have so many", example=1))


@dataclass(frozen=True, kw_only=True)
class HoldingNode(NodeShare):
    """What one node holds, and whether it can work."""

    takes_work: bool = field(metadata=describe("whether its NodeManager takes containers", example=True))


@dataclass(frozen=True)
class CostEntry:
    """What a node pays for a byte that another one holds."""

    reader: str = field(metadata=_NODE)
    holder: str = field(metadata=_NODE)
    seconds_per_byte: float = field(metadata=describe("for each byte", unit="seconds", example=1e-08))
    basis: str = field(metadata=describe(limits=Limits(choices=("measured", "estimated", "assumed"))))
    age_seconds: float | None = field(
        metadata=describe("since it was measured; null if it was not", unit="seconds", example=60.0)
    )


@dataclass(frozen=True)
class CostMatrix:
    """What reading costs between the nodes."""

    measured: bool = field(metadata=describe("whether anything is known by measurement", example=False))
    nodes: tuple[str, ...] = field(metadata=describe("the nodes of the entries", example=["127.0.1.11"]))
    most_nodes: int = field(metadata=describe("beyond so many nodes there are no entries", example=40))
    said: tuple[str, ...] = field(metadata=describe("sentences on what is not known", example=[]))
    entries: tuple[CostEntry, ...]


@dataclass(frozen=True, kw_only=True)
class CapabilityValue(Reading):
    """What one node is judged by."""

    unit: str = field(metadata=describe("unit of the value", example="images/second"))


@dataclass(frozen=True)
class NodePlan:
    """What one node gets by a plan."""

    node_name: str = field(metadata=_NODE)
    images: int = field(metadata=describe("files; each counts as one image", example=1))
    size_bytes: int = field(metadata=describe("of these files", unit="bytes", example=1000))
    local_images: int = field(metadata=describe("files of these that it holds", example=1))
    moved_bytes: int = field(metadata=describe("that it reads from others", unit="bytes", example=0))
    makespan: float = field(metadata=describe("in seconds when the capability is in images per second", example=2.0))


@dataclass(frozen=True, kw_only=True)
class PolicyPlan(PlanQuality):
    """What one policy would do with the files."""

    policy: str = field(metadata=_POLICY)
    error: str | None = field(default=None, metadata=describe("null: the policy has made a plan", example=None))
    planning_seconds: float = field(metadata=describe("that the policy took", unit="seconds", example=0.001))
    nodes: tuple[NodePlan, ...]


@dataclass(frozen=True)
class FailedPlan:
    """A policy that cannot divide the files."""

    policy: str = field(metadata=_POLICY)
    error: str = field(metadata=describe("why it cannot", example="no node can do anything"))


@dataclass(frozen=True, kw_only=True)
class ShownPath:
    """A path: who holds its blocks, what reading costs, and what each policy would do."""

    state: str = field(default="ready", metadata=describe(limits=Limits(choices=("ready",))))
    path: str = field(metadata=_PATH)
    listed_age_seconds: float = field(metadata=describe("since it was listed", unit="seconds", example=2.5))
    files: int = field(metadata=describe("below the path", example=1))
    size_bytes: int = field(metadata=describe("of all files", unit="bytes", example=1000))
    blocks: int = field(metadata=describe("of all files", example=1))
    open_files: int = field(metadata=describe("that are being written", example=0))
    erasure_coded_files: int = field(metadata=describe("that are stored in erasure-coded blocks", example=0))
    missing_files: int = field(metadata=describe("of which some block has no live replica", example=0))
    missing: tuple[str, ...] = field(
        metadata=describe("the first of the missing files", limits=Limits(longest=MOST_MISSING), example=[])
    )
    replicas: tuple[ReplicaCount, ...] = field(metadata=describe("the fewest first"))
    nodes: tuple[HoldingNode, ...] = field(metadata=describe("that hold blocks or take work"))
    access_cost: CostMatrix
    capability: str | None = field(metadata=describe("that was asked for", example="perf_cpu"))
    values: Mapping[str, CapabilityValue] = field(
        metadata=describe(
            "by node, what the capability is there",
            example={"127.0.1.11": answer_of(CapabilityValue(0.5, 1.5, "fresh", unit="images/second"))},
        )
    )
    epsilon: float = field(metadata=describe("by how much a plan may end after the bound, as a ratio", example=0.02))
    images: int = field(metadata=describe("files to be divided; each counts as one image", example=1))
    plans: tuple[PolicyPlan | FailedPlan, ...] = field(metadata=describe("one for each policy"))
    no_plans: str | None = field(metadata=describe("why there are no plans", example=None))
