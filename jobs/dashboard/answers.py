"""What the board answers of jobs, field by field: JSON and OpenAPI document are both made from these records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infosvc.wire.fields import Limits, describe, describe_property
from jobs.application.status import JobStatus, NodeStatus
from jobs.division.explained import Explanation
from jobs.reports.report import Failure, JobReport, LeaseReport, NodeReport

JOB = "application_1700000000000_0001"
CONTAINER = "container_1700000000000_0001_01_000002"

_JOB = describe(example=JOB)
_CONTAINER = describe(example=CONTAINER)
_NODE = describe(example="127.0.1.11")
_ENDED = describe("whether it has ended", example=False)
_WORDS = describe("in words", example="0.0 s to 5.0 s: 1 lease, images: 5 own disk")


@dataclass(frozen=True)
class Job:
    """One job of the list: what YARN says of it."""

    job_id: str = field(metadata=_JOB)
    name: str = field(metadata=describe(example="nodewise mxnet_alexnet"))
    user: str = field(metadata=describe("who submitted it", example="alice"))
    queue: str = field(metadata=describe("queue of YARN", example="root.default"))
    state: str = field(metadata=describe("YARN's word", example="RUNNING"))
    final: str = field(metadata=describe("YARN's word on how it ended", example="UNDEFINED"))
    ended: bool = field(metadata=_ENDED)
    progress: float = field(metadata=describe("0 to 1", example=0.25))
    started_at: float | None = field(metadata=describe("when it started", unit="Unix seconds", example=1700000000.0))
    finished_at: float | None = field(
        metadata=describe("when it ended; null before", unit="Unix seconds", example=None)
    )
    said: str = field(metadata=describe("the first line of what YARN says beyond that", example=""))
    output: str | None = field(
        metadata=describe("folder of its results; null for a kind of job without one", example="/out/run1")
    )
    kind: str = field(metadata=describe("of job; task if it is the application of one", example="classify"))


@dataclass(frozen=True)
class Jobs:
    """All jobs of nodewise that YARN remembers."""

    jobs: tuple[Job, ...] = field(metadata=describe("the newest first"))


@dataclass(frozen=True)
class NodeProgress(NodeStatus):
    """How far one node is, and what it does of others' parts."""

    @property
    @describe_property("units that it does of others' parts", example=1)
    def beyond_plan(self) -> int:
        """What it has done and does now, less what it was given at first."""
        return max(0, self.done + self.running - self.planned)


@dataclass(frozen=True)
class JobProgress(JobStatus):
    """How far a job is."""

    nodes: tuple[NodeProgress, ...]


@dataclass(frozen=True)
class DrawnBar:
    """Leases of one node that are drawn as one bar."""

    begin: float = field(metadata=describe("since the work began", unit="seconds", example=0.0))
    end: float = field(metadata=describe("since the work began", unit="seconds", example=5.0))
    kind: str = field(metadata=describe("what most of its images were", example="local"))
    said: str = field(metadata=_WORDS)


@dataclass(frozen=True)
class DrawnLane:
    """One node of a time line."""

    node_name: str = field(metadata=_NODE)
    bars: tuple[DrawnBar, ...] = field(metadata=describe("what counted"))
    refused: tuple[DrawnBar, ...] = field(metadata=describe("what did not count"))
    failures: tuple[Failure, ...] = field(metadata=describe("what the node lost on the way"))
    said: str = field(metadata=_WORDS)


@dataclass(frozen=True)
class DrawnTimeline:
    """The leases of a job as bars."""

    seconds: float = field(metadata=describe("at which the last lane ends", unit="seconds", example=20.0))
    kinds: Mapping[str, str] = field(metadata=describe("kinds of bars in words", example={"local": "own disk"}))
    lanes: tuple[DrawnLane, ...]


@dataclass(frozen=True, kw_only=True)
class ReportedNode(NodeReport):
    """What one node did, of others' parts too."""

    stolen_images: int = field(metadata=describe("images that the plan had given to another node", example=0))


@dataclass(frozen=True, kw_only=True)
class WholeReport(JobReport):
    """report.json with its leases drawn as bars; `leases` are those of others' parts alone."""

    nodes: tuple[ReportedNode, ...]
    leases: tuple[LeaseReport, ...] = field(default=(), metadata=describe(answered=False))
    remarks: tuple[str, ...] = field(
        metadata=describe("sentences on what went otherwise than planned", example=["0 B moved"])
    )
    timeline: DrawnTimeline

    @property
    @describe_property("images that another node did than the plan said", example=0)
    def stolen_images(self) -> int:
        """As the leases tell."""
        return self.stolen_items


@dataclass(frozen=True)
class Ending:
    """A wish to end a job, and what came of it."""

    state: str = field(metadata=describe(limits=Limits(choices=("asked", "done", "failed"))))
    said: str = field(default="", metadata=describe("what the command said that ends it", example=""))


@dataclass(frozen=True)
class EndedJob:
    """A job that YARN is asked to end."""

    job_id: str = field(metadata=_JOB)
    ending: Ending | None


@dataclass(frozen=True)
class Outcome:
    """What a job left when it ended; nothing before."""

    report: WholeReport | None = field(
        default=None, metadata=describe("what it did; null before it has ended", example=None)
    )
    no_report: str | None = field(
        default=None, metadata=describe("why there is no report of a job that has ended", example=None)
    )
    record: JobProgress | None = field(
        default=None,
        metadata=describe(
            "of a job that has ended, of a kind without output: what its application master said last", example=None
        ),
    )


@dataclass(frozen=True, kw_only=True)
class WholeJob(Outcome, Job):
    """One job: how far it is while it runs, and what it left."""

    headline: str = field(metadata=describe("what it does, in a few words", example="works"))
    silent_seconds: float | None = field(
        metadata=describe("since its application master answered", unit="seconds", example=0.0)
    )
    status: JobProgress | None = field(metadata=describe("how far it is; null when it does not run"))
    ending: Ending | None = field(
        default=None, metadata=describe("the last wish to end it; null when nobody had one", example=None)
    )


@dataclass(frozen=True)
class JobContainer:
    """One container of a job; its log lies at `address`, HOST:PORT of a NodeManager."""

    container_id: str = field(metadata=_CONTAINER)
    node_name: str = field(metadata=_NODE)
    role: str = field(metadata=describe("what it is for", example="worker"))
    address: str = field(metadata=describe(answered=False))


@dataclass(frozen=True)
class LogContainers:
    """Whose logs there are."""

    job_id: str = field(metadata=_JOB)
    ended: bool = field(metadata=_ENDED)
    streams: tuple[str, ...] = field(metadata=describe("what each container may have", example=["stdout", "stderr"]))
    containers: tuple[JobContainer, ...]


@dataclass(frozen=True)
class LogPiece:
    """A piece of a log: whole lines, and of a long log only the last 2 MiB."""

    job_id: str = field(metadata=_JOB)
    ended: bool = field(metadata=_ENDED)
    container_id: str = field(metadata=_CONTAINER)
    node_name: str = field(metadata=_NODE)
    stream: str = field(metadata=describe(example="stdout"))
    offset: int = field(metadata=describe("at which the text begins", unit="bytes", example=0))
    next: int = field(metadata=describe("to ask on with, as `offset`", unit="bytes", example=8))
    more: bool = field(metadata=describe("whether there is more already: ask again at once", example=False))
    text: str = field(metadata=describe(example="loading\n"))


@dataclass(frozen=True, kw_only=True)
class ExplainedJob(Explanation):
    """What `nodewise job explain ID --json` prints, and its heading."""

    heading: tuple[str, ...] = field(
        metadata=describe("sentences", example=["40 images of /data/images, divided by maxflow"])
    )
