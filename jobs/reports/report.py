"""What a job did, as numbers for programs: report.json.

In JSON items are called `images`, whatever they are: others read them by this name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infosvc.wire.fields import answer_of, describe, describe_property, fields_of
from jobs.errors import JobError
from jobs.reports.texts import FORMER_UNIT
from locality.bounds import makespan_lower_bound

ACCEPTED = "accepted"
PLAN, CONTAINER, NETWORK = "plan", "container", "network"
"""Phases: until it was known who does what; of a node, until its container was started, and the network loaded."""
SEEDED = "Seeded weights, not trained ones: speeds and counts are real, the classes mean nothing."


_A_NODE = describe(example="127.0.1.11")
_ITEMS = describe("items that it did", name="images", example=20)


@dataclass(frozen=True)
class Weights:
    """Where the network's weights came from, and what that means for the classes in the result."""

    source: str = field(metadata=describe("where they came from", example="seed 1"))
    meaning: str = field(default="", metadata=describe("what that means for the classes", example=SEEDED))


@dataclass(frozen=True)
class InputValue:
    """One value the plan was made from."""

    data_name: str = field(metadata=describe(example="perf_cpu"))
    node_name: str = field(metadata=_A_NODE)
    data_value: str = field(metadata=describe("as text", example="0.5"))
    age: float = field(metadata=describe("old when it was read", unit="seconds", example=1.5))
    unit: str = field(default="", metadata=describe("unit of the value", example=""))
    state: str = field(default="fresh", metadata=describe(example="fresh"))


@dataclass(frozen=True)
class NodeReport:
    """One node's share: what it was judged by and given, and what it did."""

    node_name: str = field(metadata=_A_NODE)
    capability: float = field(metadata=describe("what it was judged by", example=0.5))
    planned_items: int = field(metadata=describe("items that the plan gave it", name="planned_images", example=20))
    items: int = field(metadata=_ITEMS)
    local_items: int = field(
        metadata=describe("items of these that lay on its own disk", name="local_images", example=20)
    )
    seconds: float = field(metadata=describe("of work", unit="seconds", example=20.0))
    items_per_second: float = field(
        metadata=describe("per second", unit="items", name="images_per_second", example=1.0)
    )
    known_items_per_second: float = field(
        default=0.0,
        metadata=describe(
            "per second in an earlier job, of a node that this job gave nothing; else 0",
            unit="items",
            name="known_images_per_second",
            example=0.0,
        ),
    )


@dataclass(frozen=True)
class LeaseReport:
    """One lease: who had these items from `begin` to `end`, in seconds since the work began.

    `outcome` is accepted, or why its rows were not taken; `origin` is the node whose part it was, None after it had
    been given back.
    """

    node_name: str
    begin: float
    end: float
    items: int = field(metadata=describe(name="images"))
    local_items: int = field(metadata=describe(name="local_images"))
    outcome: str
    origin: str | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether its rows stand in the results."""
        return self.outcome == ACCEPTED

    @property
    def is_stolen(self) -> bool:
        """Whether the plan had given these items to another node, or took them back from one that was lost."""
        return self.origin != self.node_name


@dataclass(frozen=True)
class Failure:
    """What a node lost on the way; `kind` is one of jobs.application.exits."""

    node_name: str = field(metadata=_A_NODE)
    container_id: str = field(metadata=describe(example="container_1700000000000_0001_01_000002"))
    kind: str = field(metadata=describe("how its container ended", example="lost node"))
    seconds: float = field(metadata=describe("since the work began", unit="seconds", example=5.0))
    said: str = field(default="", metadata=describe("what is known beyond that", example=""))
    counts: bool = field(
        default=True,
        metadata=describe("whether it speaks against the node; suspected items speak against themselves", example=True),
    )


@dataclass(frozen=True)
class Phase:
    """What a job waited for, or a node of it, from `begin` to `end`, in seconds since the work began; below 0 before.

    `name` is one of jobs.reports.phases.WORDS.
    """

    name: str = field(metadata=describe("what it was", example="container"))
    begin: float = field(metadata=describe("since the work began; below 0 before", unit="seconds", example=0.5))
    end: float = field(metadata=describe("since the work began", unit="seconds", example=2.0))
    node_name: str = field(
        default="", metadata=describe("whose container it was; empty for the application master", example="127.0.1.11")
    )

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.end - self.begin


@dataclass(frozen=True)
class JobReport:
    """One job; what follows from the fields is a property, so that the numbers cannot disagree.

    `unit` is what the kind of job calls an item, in the plural; in JSON it stands where items are not images.
    """

    job_id: str = field(metadata=describe(example="application_1700000000000_0001"))
    application_id: str = field(metadata=describe("YARN's name of it", example="application_1700000000000_0001"))
    engine: str = field(metadata=describe("engine and model", example="mxnet/alexnet"))
    policy: str = field(metadata=describe("by which the items were divided", example="maxflow"))
    capability: str = field(metadata=describe("data name by which the nodes were judged", example="perf_cpu"))
    items: int = field(metadata=describe("items in all", name="images", example=40))
    errors: int = field(metadata=describe("items whose row has an error", example=0))
    started_at: str = field(metadata=describe("ISO 8601 with its zone", example="2026-01-02T03:04:05+00:00"))
    bytes_read: int = field(metadata=describe("of items", unit="bytes", example=40000))
    bytes_moved: int = field(metadata=describe("read by nodes that hold no replica", unit="bytes", example=0))
    bytes_moved_optimal: int = field(
        metadata=describe("that had to move at least for what each node did", unit="bytes", example=0)
    )
    nodes: tuple[NodeReport, ...]
    inputs: tuple[InputValue, ...]
    weights: Weights
    state: str = field(default="SUCCEEDED", metadata=describe(example="SUCCEEDED"))
    wall_seconds: float = field(
        default=0.0,
        metadata=describe(
            "from the application master's start to the last result, planning and containers included",
            unit="seconds",
            example=25.0,
        ),
    )
    note: str = field(default="", metadata=describe("what a reader must know of the figures", example=""))
    bytes_moved_planned: int = field(default=0, metadata=describe("moved by the plan alone", unit="bytes", example=0))
    first_result_seconds: float = field(
        default=0.0,
        metadata=describe("from the application master's start to the first result", unit="seconds", example=6.0),
    )
    attempts: int = field(default=1, metadata=describe("starts of the application master", example=1))
    master_memory_mb: int = field(
        default=0,
        metadata=describe("of the application master's container; 0 where it is not known", unit="MB", example=640),
    )
    master_peak_mb: int = field(
        default=0, metadata=describe("that the application master took at most, Java included", unit="MB", example=300)
    )
    leases: tuple[LeaseReport, ...] = ()
    failures: tuple[Failure, ...] = ()
    phases: tuple[Phase, ...] = ()
    unit: str = field(default=FORMER_UNIT, metadata=describe(answered=False))

    @property
    @describe_property("of the node that worked longest", unit="seconds", example=20.0)
    def makespan_seconds(self) -> float:
        """Seconds of the node that worked longest."""
        return max((node.seconds for node in self.nodes), default=0.0)

    @property
    @describe_property("of a perfect division at the speeds measured; 0 when none was", unit="seconds", example=20.0)
    def lower_bound_seconds(self) -> float:
        """items / sum(items_per_second): what a perfect division had taken; 0 when no speed was measured.

        A node without items could have taken some, so it counts with the speed it had before.
        """
        speeds = {node.node_name: node.items_per_second or node.known_items_per_second for node in self.nodes}
        return makespan_lower_bound(self.items, speeds) if any(speeds.values()) else 0.0

    @property
    @describe_property("makespan over lower bound, 1 is perfect; null when there is no bound", example=1.0)
    def makespan_over_bound(self) -> float | None:
        """1 is perfect; None when there is no bound."""
        bound = self.lower_bound_seconds
        return self.makespan_seconds / bound if bound else None

    @property
    @describe_property(
        "from the first container's start to the last result; 0 where it is not told", unit="seconds", example=24.0
    )
    def whole_seconds(self) -> float:
        """Seconds from the first container's start to the last result, what workers need to begin included; 0 where
        the report does not tell of phases.
        """
        ends = [lease.end for lease in self.leases if lease.is_accepted]
        return max(ends) - min(self._started().values()) if ends and self._started() else 0.0

    @property
    @describe_property(
        "of a perfect division that counts when each node could begin, from the first container on; 0 when unknown",
        unit="seconds",
        example=23.0,
    )
    def whole_bound_seconds(self) -> float:
        """The T with sum(speed_i * max(0, T - ready_i)) = items; 0 where that is not known of each node that did any.

        ready_i is when node i had loaded the network and there was a plan, in seconds since the first container was
        started.
        """
        speeds = {node.node_name: node.items_per_second or node.known_items_per_second for node in self.nodes}
        ready = {one.node_name: one.end for one in self.phases if one.name == NETWORK}
        known = {node: speed for node, speed in speeds.items() if node in ready}
        is_lacking = any(node.items and node.node_name not in ready for node in self.nodes)
        if is_lacking or not (self.whole_seconds and any(known.values())):
            return 0.0
        first = min(self._started().values())
        planned = max((one.end for one in self.phases if one.name == PLAN), default=first)
        starts = {node: max(ready[node], planned, first) - first for node in known}
        return makespan_lower_bound(self.items, known, starts)

    @property
    @describe_property("whole seconds over their bound, 1 is perfect; null when there is none", example=1.04)
    def whole_over_bound(self) -> float | None:
        """1 is perfect; None when there is no bound."""
        bound = self.whole_bound_seconds
        return self.whole_seconds / bound if bound else None

    @property
    @describe_property("share of the items read from the node's own disk, 0 to 1", example=1.0)
    def locality_ratio(self) -> float:
        """Share of the items read from the node's own disk, 0 to 1; 1 when none was read."""
        done = sum(node.items for node in self.nodes)
        return sum(node.local_items for node in self.nodes) / done if done else 1.0

    @property
    def stolen_items(self) -> int:
        """Items that were done by another node than the plan said."""
        return sum(lease.items for lease in self.leases if lease.is_accepted and lease.is_stolen)

    def _started(self) -> dict[str, float]:
        """When the first container of each node was started."""
        return {one.node_name: one.end for one in self.phases if one.name == CONTAINER}

    def to_json(self) -> dict[str, Any]:
        """The object of report.json."""
        return answer_of(self) | ({} if self.unit == FORMER_UNIT else {"unit": self.unit})

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> JobReport:
        """Inverse of `to_json`; unknown keys are ignored, JobError names what is missing or of a wrong kind.

        Before there were leases, what was moved was what the plan moved.
        """
        try:
            rows = {
                "nodes": tuple(_record(NodeReport, node) for node in body["nodes"]),
                "inputs": tuple(_record(InputValue, value) for value in body["inputs"]),
                "weights": _record(Weights, body["weights"]),
                "leases": tuple(_record(LeaseReport, lease) for lease in body.get("leases", ())),
                "failures": tuple(_record(Failure, failure) for failure in body.get("failures", ())),
                "phases": tuple(_record(Phase, phase) for phase in body.get("phases", ())),
            }
            older = {"bytes_moved_planned": body["bytes_moved"]}
            report: JobReport = _record(cls, {**older, **body, **rows})
        except (KeyError, TypeError, AttributeError) as error:
            raise JobError(
                f"this is not a job's report.json ({type(error).__name__}: {error})",
                remedy="give the file that the job wrote",
            ) from None
        return report


def _record(kind: Any, body: Mapping[str, Any]) -> Any:
    found = [one for one in fields_of(kind) if one.described.sent and one.answer_name in body]
    return kind(**{one.name: body[one.answer_name] for one in found})
