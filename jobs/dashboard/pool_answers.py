"""What the board answers of pools, field by field."""

from __future__ import annotations

from dataclasses import dataclass, field

from infosvc.wire.fields import Record, describe, describe_property
from jobs.application.status import NodeStatus
from jobs.dashboard.answers import JOB
from jobs.kinds.pool.about import tell_worker

_POOL = describe("its name", example="photos")
_QUEUE = describe("queue of YARN", example="root.default")
_POOL_JOB = describe("of a job in a pool", example="pool_1700000000000_0001_3")
_OF_YARN = describe("its application of YARN", example=JOB)


@dataclass(frozen=True)
class ListedPool:
    """One pool of the list: what YARN says of it."""

    name: str = field(metadata=_POOL)
    job_id: str = field(metadata=_OF_YARN)
    user: str = field(metadata=describe("whose it is", example="alice"))
    queue: str = field(metadata=_QUEUE)
    state: str = field(metadata=describe("YARN's word", example="RUNNING"))
    started_at: float = field(metadata=describe("when it was asked for", unit="Unix seconds", example=1700000000.0))
    own: bool = field(
        metadata=describe("whether the caller may ask for more of it by its name, and use it", example=True)
    )


@dataclass(frozen=True)
class ListedPools:
    """The pools that are up or coming up."""

    pools: tuple[ListedPool, ...] = field(metadata=describe("by name"))


@dataclass(frozen=True)
class PoolWorker(NodeStatus):
    """A node of a pool, and its worker."""

    @property
    @describe_property("what it does: asked for, loading, ready, working, lost or left out", example="ready")
    def worker(self) -> str:
        """The same in the words of pools."""
        return tell_worker(self)


@dataclass(frozen=True)
class PoolJob(Record):
    """A job that a pool has."""

    job_id: str = field(metadata=_POOL_JOB)
    state: str = field(metadata=describe("planning, running, storing, succeeded, failed or killed", example="running"))
    said: str = field(metadata=describe("why it is so, once it has ended", example=""))
    output: str = field(metadata=describe("folder of its results", example="/out/pooled"))
    weight: float = field(metadata=describe("its share of workers that jobs have together", example=1.0))
    done: int = field(metadata=describe("units that are done", example=10))
    of: int = field(metadata=describe("units in all; 0 until it is planned", example=40))
    errors: int = field(metadata=describe("units of these that have an error", example=0))


@dataclass(frozen=True, kw_only=True)
class ShownPool:
    """A pool: what it was told, what each worker does, and its jobs."""

    name: str = field(metadata=_POOL)
    job_id: str = field(metadata=_OF_YARN)
    kind: str = field(metadata=describe("of its jobs", example="classify"))
    engine: str = field(metadata=describe("of its workers", example="onnx"))
    model: str = field(metadata=describe("that they have loaded", example="alexnet"))
    model_file: str | None = field(metadata=describe("whose content that is; null for a model by name", example=None))
    batch: int = field(metadata=describe("images of one inference", example=8))
    vcores: int = field(metadata=describe("of each worker", example=1))
    queue: str = field(metadata=_QUEUE)
    most_nodes: int | None = field(metadata=describe("nodes that have a worker; null for all", example=None))
    best_by: str | None = field(metadata=describe("data name that chooses them", example=None))
    most_jobs: int = field(metadata=describe("that it works on at once", example=16))
    idle_seconds: float | None = field(
        metadata=describe("without a job or picture until it ends; null for never", unit="seconds", example=1800.0)
    )
    idle: str = field(metadata=describe("the same in words", example="30m"))
    ends_in: float | None = field(
        metadata=describe(
            "until it ends by itself; null while it works, if it never does, or if that is not known",
            unit="seconds",
            example=1740.0,
        )
    )
    headline: str = field(metadata=describe("what its application does, in a few words", example="works"))
    silent_seconds: float | None = field(
        metadata=describe(
            "since its application master told of the nodes; null before it ever did", unit="seconds", example=0.0
        )
    )
    nodes: tuple[PoolWorker, ...] = field(metadata=describe("none before its application master has told of them"))
    jobs: tuple[PoolJob, ...] | None = field(
        metadata=describe("those at work and the last 100 that ended, the oldest first; null if it does not answer now")
    )
    said: str = field(metadata=describe("why there are no jobs", example=""))

    @property
    @describe_property("workers that have their network loaded", example=3)
    def ready(self) -> int:
        """Those that are ready, or at work."""
        return sum(node.worker in ("ready", "working") for node in self.nodes)

    @property
    @describe_property("workers that it is to have; null before that is known", example=4)
    def wanted(self) -> int | None:
        """As many as it was told, else one on each node."""
        return self.most_nodes or len(self.nodes) or None


@dataclass(frozen=True)
class GivenJob:
    """A job that a pool has taken on."""

    job_id: str = field(metadata=_POOL_JOB)
    notes: tuple[str, ...] = field(metadata=describe("what there is to say of it", example=[]))
