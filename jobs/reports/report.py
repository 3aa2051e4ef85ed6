"""What a job did, as numbers for programs: report.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from jobs.errors import JobError
from locality.bounds import makespan_lower_bound

ACCEPTED = "accepted"
SEEDED = "Seeded weights, not trained ones: speeds and counts are real, the classes mean nothing."


@dataclass(frozen=True)
class Weights:
    """Where the network's weights came from, and what that means for the classes in the result."""

    source: str
    meaning: str = ""


@dataclass(frozen=True)
class InputValue:
    """One value the plan was made from, as text, with its age in seconds when it was read."""

    data_name: str
    node_name: str
    data_value: str
    age: float
    unit: str = ""
    state: str = "fresh"


@dataclass(frozen=True)
class NodeReport:
    """One node's share: what it was judged and given, and what it did in `seconds` of work.

    `known_images_per_second` is its speed in an earlier job, for a node that this job gave nothing; else 0.
    """

    node_name: str
    capability: float
    planned_images: int
    images: int
    local_images: int
    seconds: float
    images_per_second: float
    known_images_per_second: float = 0.0


@dataclass(frozen=True)
class LeaseReport:
    """One lease: who had these images from `begin` to `end`, in seconds since the work began.

    `outcome` is accepted, or why its rows were not taken; `origin` is the node whose part it was, None after it had
    been given back.
    """

    node_name: str
    begin: float
    end: float
    images: int
    local_images: int
    outcome: str
    origin: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether its rows stand in the results."""
        return self.outcome == ACCEPTED

    @property
    def stolen(self) -> bool:
        """Whether the plan had given these images to another node, or took them back from one that was lost."""
        return self.origin != self.node_name


@dataclass(frozen=True)
class Failure:
    """What a node lost on the way: `kind` is one of jobs.application.exits, `seconds` since the work began.

    `counts` tells whether it speaks against the node; suspected images speak against themselves.
    """

    node_name: str
    container_id: str
    kind: str
    seconds: float
    said: str = ""
    counts: bool = True


@dataclass(frozen=True)
class JobReport:
    """One job; what follows from the fields is a property, so that the numbers cannot disagree.

    `errors` counts images whose row has an error; `started_at` is ISO 8601 with its zone; `wall_seconds` is
    the time from the application master's start to the last result, planning and containers included, and
    `first_result_seconds` to the first. `bytes_moved` were read by nodes that hold no replica, `bytes_moved_planned`
    by the plan alone; `attempts` are those of the application master.
    """

    job_id: str
    application_id: str
    engine: str
    policy: str
    capability: str
    images: int
    errors: int
    started_at: str
    bytes_read: int
    bytes_moved: int
    bytes_moved_optimal: int
    nodes: tuple[NodeReport, ...]
    inputs: tuple[InputValue, ...]
    weights: Weights
    state: str = "SUCCEEDED"
    wall_seconds: float = 0.0
    note: str = ""
    bytes_moved_planned: int = 0
    first_result_seconds: float = 0.0
    attempts: int = 1
    leases: tuple[LeaseReport, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def makespan_seconds(self) -> float:
        """Seconds of the node that worked longest."""
        return max((node.seconds for node in self.nodes), default=0.0)

    @property
    def lower_bound_seconds(self) -> float:
        """images / sum(images_per_second): what a perfect division had taken; 0 when no speed was measured.

        A node without images could have taken some, so it counts with the speed it had before.
        """
        speeds = {node.node_name: node.images_per_second or node.known_images_per_second for node in self.nodes}
        return makespan_lower_bound(self.images, speeds) if any(speeds.values()) else 0.0

    @property
    def makespan_over_bound(self) -> float | None:
        """1 is perfect; None when there is no bound."""
        bound = self.lower_bound_seconds
        return self.makespan_seconds / bound if bound else None

    @property
    def locality_ratio(self) -> float:
        """Share of the images read from the node's own disk, 0 to 1; 1 when none was read."""
        done = sum(node.images for node in self.nodes)
        return sum(node.local_images for node in self.nodes) / done if done else 1.0

    @property
    def stolen_images(self) -> int:
        """Images that were done by another node than the plan said."""
        return sum(lease.images for lease in self.leases if lease.accepted and lease.stolen)

    def to_json(self) -> dict[str, Any]:
        """The object of report.json."""
        return asdict(self) | {
            "makespan_seconds": self.makespan_seconds,
            "lower_bound_seconds": self.lower_bound_seconds,
            "makespan_over_bound": self.makespan_over_bound,
            "locality_ratio": self.locality_ratio,
        }

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
    return kind(**{field.name: body[field.name] for field in fields(kind) if field.name in body})
