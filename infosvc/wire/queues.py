"""YARN's queues as they travel, in which tasks and other applications wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from infosvc.wire.fields import Record, answer_of, describe
from infosvc.wire.tasks import EXAMPLE_ID

_SIZE: dict[str, Any] = {"unit": "MB", "example": 1024}
_PART: dict[str, Any] = {"unit": "of the cluster", "example": 0.5}


@dataclass(frozen=True)
class QueueUser(Record):
    """A user of YARN who has applications in a queue."""

    name: str = field(metadata=describe("as YARN knows it", example="maria"))
    used_mb: int = field(metadata=describe("of memory that it has there", **_SIZE))
    most_mb: int = field(metadata=describe("of memory that it may have there now", **_SIZE))


@dataclass(frozen=True)
class MastersLimit(Record):
    """Of which type of resource application masters have most of what they may have together."""

    resource: str = field(metadata=describe("as YARN names it", example="memory-mb"))
    used: int = field(metadata=describe("that they have of it", example=1024))
    most: int = field(metadata=describe("that they may have of it", example=1024))
    is_full: bool = field(
        metadata=describe("whether that leaves no room for any that waits and asks for it", example=True)
    )


@dataclass(frozen=True)
class YarnQueue(Record):
    """A queue that takes applications."""

    name: str = field(metadata=describe(example="root.default"))
    state: str = field(metadata=describe("YARN's word", example="RUNNING"))
    capacity: float = field(metadata=describe("that it is guaranteed, 0 to 1", **_PART))
    used: float = field(metadata=describe("that it has now, 0 to 1", **_PART))
    maximum: float = field(metadata=describe("that it may have at most, 0 to 1", **_PART))
    masters_mb: int = field(metadata=describe("of memory that its application masters have, tasks among them", **_SIZE))
    masters_most_mb: int = field(metadata=describe("of memory that they may have together", **_SIZE))
    running: int = field(metadata=describe("applications that have a place", example=1))
    waiting: int = field(metadata=describe("applications that wait for one", example=1))
    users: tuple[QueueUser, ...] = field(metadata=describe("who has applications there, by name"))
    masters: MastersLimit = field(metadata=describe("the limit of its application masters that is nearest"))

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with its users and the limit, which is that of memory from an earlier version."""
        users = tuple(QueueUser.from_json(one) for one in body["users"])
        of_memory = {"resource": "memory-mb", "used": body["masters_mb"], "most": body["masters_most_mb"]}
        masters = MastersLimit.from_json(body.get("masters") or {**of_memory, "is_full": False})
        return super().from_json({**body, "users": users, "masters": masters})


@dataclass(frozen=True)
class ExpectedStart(Record):
    """When an application begins, with a probability of 80 %."""

    earliest: float = field(metadata=describe("the earliest", unit="Unix seconds", example=1700000120.0))
    latest: float = field(metadata=describe("the latest", unit="Unix seconds", example=1700000540.0))


@dataclass(frozen=True, kw_only=True)
class WaitingApplication(Record):
    """An application that waits for its first place; of those of others only the position is told."""

    queue: str = field(metadata=describe("where it waits", example="root.default"))
    position: int = field(metadata=describe("in which YARN takes those of this queue, from 1 on", example=1))
    own: bool = field(default=False, metadata=describe("whether it is a task of the caller", example=True))
    job_id: str | None = field(
        default=None, metadata=describe("of YARN; null if it is another's", example="application_1700000000000_0001")
    )
    task_id: str | None = field(default=None, metadata=describe("null if it is not a task", example=EXAMPLE_ID))
    kind: str | None = field(default=None, metadata=describe("of job, or YARN's type of application", example="task"))
    is_job: bool = field(
        default=False, metadata=describe("whether it is of nodewise, so that GET /jobs/ID shows it", example=True)
    )
    name: str | None = field(default=None, metadata=describe("what people call it", example="mnist"))
    owner: str | None = field(
        default=None,
        metadata=describe("who asked for the task, or YARN's user of another application", example="maria"),
    )
    memory_mb: int | None = field(
        default=None, metadata=describe("of memory that it asks for, the runner's too", **_SIZE)
    )
    vcores: int | None = field(default=None, metadata=describe("cores that it asks for", example=1))
    resources: Mapping[str, int] | None = field(
        default=None,
        metadata=describe("of other types of resource that it asks for, by their names", example={"yarn.io/gpu": 2}),
    )
    since: float | None = field(
        default=None, metadata=describe("when YARN got it", unit="Unix seconds", example=1700000000.0)
    )
    waits_for: str | None = field(
        default=None,
        metadata=describe(
            "what it waits for, in words",
            example="a node with room: it asks for 1,024 MB and 1 vcore, and n2 has the most free, 512 MB and 3 vcores",
        ),
    )
    said: str | None = field(
        default=None, metadata=describe("the beginning of what YARN says of it", example="Application is Activated")
    )
    start: ExpectedStart | None = field(
        default=None, metadata=describe("when it is expected to begin; null if that is not known")
    )
    no_start: str | None = field(
        default=None,
        metadata=describe(
            "why that is not known", example="not known: fewer than 10 ended tasks and applications are remembered"
        ),
    )

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with its expected start."""
        start = body.get("start")
        return super().from_json({**body, "start": ExpectedStart.from_json(start) if start else None})


@dataclass(frozen=True)
class ClusterQueues(Record):
    """All queues of YARN, and what waits in them."""

    time: float = field(metadata=describe("of this answer", unit="Unix seconds", example=1700000060.0))
    scheduler: str = field(metadata=describe("the kind of YARN's scheduler", example="capacity"))
    said: str = field(metadata=describe("what stands in the way of telling more, in words", example=""))
    queues: tuple[YarnQueue, ...] = field(metadata=describe("by name"))
    waiting: tuple[WaitingApplication, ...] = field(metadata=describe("by queue and position"))
    whole: bool = field(metadata=describe("whether these are all that wait", example=True))
    held_back: int = field(
        metadata=describe(
            "tasks of the caller that YARN does not have yet: they wait for others, or the submitter", example=0
        )
    )

    def to_json(self) -> dict[str, Any]:
        """As it travels."""
        return answer_of(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with its queues and what waits."""
        queues = tuple(YarnQueue.from_json(one) for one in body["queues"])
        waiting = tuple(WaitingApplication.from_json(one) for one in body["waiting"])
        return super().from_json({**body, "queues": queues, "waiting": waiting})
