"""Tasks as they travel: how far each is, and what is learned and answered of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from infosvc.wire.fields import Limits, Record, answer_of, describe
from infosvc.wire.task_spec import EACH_NODE, TaskSpec

USER_NAME = re.compile(r"^[a-z_][a-z0-9_.-]{0,31}$")
EXAMPLE_KEY = "mnist-1"  # as Idempotency-Key of the first admin, whom the service calls admin, it makes the id below
EXAMPLE_ID = "task_f329d30149018db9"
LONGEST_REASON = 2_000
_MOMENT = {"unit": "Unix seconds", "example": 1700000000.0}
_OUTPUT_FOLDER = (
    "/var/lib/hadoop/yarn/local/usercache/nodewise/appcache/application_1700000000000_0001/"
    "container_1700000000000_0001_01_000001/work/.output"
)

MOST_TASKS_OF_ANSWER = 1_000
POINTS = 500
MOST_POINTS = 2_000


class TaskState(StrEnum):
    """How far a task is. The last four are final: a task in one of them never changes again."""

    WAITING = "waiting"  # for tasks that come before it
    QUEUED = "queued"  # for the submitter or for YARN to give it a node
    STARTING = "starting"  # it has a node, and its program does not run yet
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"  # by its owner or an admin
    LOST = "lost"  # YARN does not know what became of it

    @property
    def is_final(self) -> bool:
        """Whether the task has ended."""
        return self in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.STOPPED, TaskState.LOST)


@dataclass(frozen=True)
class TaskNews(Record):
    """What the submitter has learned of a task; what is left out stays as it is."""

    state: TaskState = field(metadata=describe("how far it is", example="running"))
    reason: str | None = field(
        default=None, metadata=describe("why it is in this state", limits=Limits(longest=LONGEST_REASON), example="")
    )
    application_id: str | None = field(
        default=None,
        metadata=describe(
            "of YARN",
            limits=Limits(pattern=r"^application_[0-9]{1,20}_[0-9]{1,10}$", longest=64, form="an id of YARN"),
            example="application_1700000000000_0001",
        ),
    )
    node_name: str | None = field(
        default=None,
        metadata=describe("where it runs or ran", limits=EACH_NODE, example="127.0.1.11"),
    )
    attempt: int | None = field(
        default=None, metadata=describe("which start this is", limits=Limits(least=1, most=100), example=1)
    )
    exit_code: int | None = field(
        default=None, metadata=describe("of the program", limits=Limits(least=-1_000, most=1_000), example=0)
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", TaskState(self.state))


@dataclass(frozen=True)
class TaskProgress(Record):
    """How far one start of a task is, as its runner tells; each time it tells all of it."""

    attempt: int = field(metadata=describe("which start this is", limits=Limits(least=1, most=100), example=1))
    running: bool = field(metadata=describe("whether its program runs; else that is still to come", example=True))
    reason: str = field(
        default="",
        metadata=describe("what it does before", limits=Limits(longest=LONGEST_REASON), example="fetching data"),
    )
    idle_since: float | None = field(
        default=None,
        metadata=describe(
            "since when its program has used none of its cores; null if it uses any", limits=Limits(least=0), **_MOMENT
        ),
    )
    output_folder: str | None = field(
        default=None,
        metadata=describe(
            "on its node, where its program leaves its output; null if none is kept",
            limits=Limits(longest=4_096, pattern=r"^/[^\x00]*$", form="an absolute path"),
            example=_OUTPUT_FOLDER,
        ),
    )


@dataclass(frozen=True)
class TaskToken(Record):
    """What the runner and the program of a task show to the service."""

    task_id: str = field(metadata=describe("the task that it is for", example=EXAMPLE_ID))
    token: str = field(metadata=describe("to be kept secret; it ends with the task", example="nw_task_5f2a_0c1d"))


@dataclass(frozen=True)
class Task(Record):
    """A task as the service knows it."""

    task_id: str = field(metadata=describe(example=EXAMPLE_ID))
    owner: str = field(metadata=describe("the user name of who asked for it: the name of a token", example="maria"))
    name: str = field(metadata=describe("what people call it", example="mnist"))
    spec: TaskSpec = field(metadata=describe(row=("SpecOfTask", ())))
    state: TaskState = field(metadata=describe("how far it is"))
    created_at: float = field(metadata=describe("when it was asked for", **_MOMENT))
    changed_at: float = field(metadata=describe("when anything of it changed last", **_MOMENT))
    reason: str = field(default="", metadata=describe("why it is in this state", example=""))
    stop_asked: bool = field(default=False, metadata=describe("whether it is to be stopped", example=False))
    taken: bool = field(
        default=False, metadata=describe("whether a submitter has taken it, so that YARN may have it", example=True)
    )
    application_id: str | None = field(
        default=None, metadata=describe("of YARN; null before", example="application_1700000000000_0001")
    )
    node_name: str | None = field(default=None, metadata=describe("where it runs or ran", example="127.0.1.11"))
    attempt: int | None = field(default=None, metadata=describe("which start this is", example=1))
    exit_code: int | None = field(default=None, metadata=describe("of the program", example=None))
    started_at: float | None = field(default=None, metadata=describe("when its program began", **_MOMENT))
    ended_at: float | None = field(default=None, metadata=describe("when it ended", **_MOMENT))
    again_of: str | None = field(default=None, metadata=describe("the task that it repeats", example=None))
    idle_since: float | None = field(
        default=None,
        metadata=describe("since when its program has used none of its cores; null if it uses any", **_MOMENT),
    )
    output_folder: str | None = field(
        default=None,
        metadata=describe(
            "on its node, where its program leaves its output now; null if none is kept",
            example=_OUTPUT_FOLDER,
        ),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", TaskState(self.state))

    @property
    def has_to_start(self) -> bool:
        """Whether YARN has no application of it yet, and is to get one."""
        return not self.state.is_final and not self.application_id

    def to_json(self) -> dict[str, Any]:
        """As it travels, with its specification within."""
        return answer_of(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return super().from_json({**body, "spec": TaskSpec.from_json(body["spec"])})


@dataclass(frozen=True)
class TaskLogPiece(Record):
    """A piece of what a task's program printed: whole lines."""

    task_id: str = field(metadata=describe(example=EXAMPLE_ID))
    state: TaskState = field(metadata=describe("how far the task is", example="running"))
    stream: str = field(metadata=describe(example="stdout"))
    attempt: int = field(metadata=describe("which start of it wrote this", example=1))
    offset: int = field(metadata=describe("at which the text begins", unit="bytes", example=0))
    next: int = field(metadata=describe("to ask on with, as `offset`", unit="bytes", example=8))
    more: bool = field(metadata=describe("whether there is more already: ask again at once", example=False))
    text: str = field(metadata=describe(example="loading\n"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", TaskState(self.state))


@dataclass(frozen=True)
class TaskCurve(Record):
    """The values of one name that a task's program has reported."""

    name: str = field(metadata=describe(example="loss"))
    last: float = field(metadata=describe("the value at the last step", example=0.31))
    least: float = field(metadata=describe("the least value", example=0.31))
    most: float = field(metadata=describe("the largest value", example=0.9))
    count: int = field(metadata=describe("steps that have a value", example=2))
    points: tuple[tuple[int, float, float], ...] = field(
        metadata=describe(
            "by step, evenly chosen if there are too many, the first and the last among them: "
            "[step, Unix seconds, value]",
            example=[[0, 1700000000.0, 0.9], [120, 1700000060.0, 0.31]],
        )
    )

    def __post_init__(self) -> None:
        points = tuple((int(step), float(at), float(value)) for step, at, value in self.points)
        object.__setattr__(self, "points", points)


@dataclass(frozen=True)
class TaskValues(Record):
    """The values that a task's program has reported, as curves."""

    task_id: str = field(metadata=describe(example=EXAMPLE_ID))
    state: TaskState = field(metadata=describe("how far the task is", example="running"))
    attempt: int | None = field(metadata=describe("which start of it reported them; null for all", example=None))
    whole: bool = field(
        metadata=describe("whether all was read; of very much, what early starts reported is left out", example=True)
    )
    curves: tuple[TaskCurve, ...] = field(metadata=describe("by name"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", TaskState(self.state))

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with its curves."""
        return super().from_json({**body, "curves": tuple(TaskCurve.from_json(one) for one in body["curves"])})


@dataclass(frozen=True)
class OutputFile(Record):
    """A file that a task left."""

    path: str = field(metadata=describe("below the task's output", example="model/weights.bin"))
    size_bytes: int = field(metadata=describe("that it has", unit="bytes", example=10_240))
    modified_at: float = field(metadata=describe("when it was written", **_MOMENT))


@dataclass(frozen=True)
class TaskOutputs(Record):
    """The files that a task left."""

    task_id: str = field(metadata=describe(example=EXAMPLE_ID))
    output: str = field(metadata=describe("the folder of HDFS that has them", example="/out/mnist"))
    files: tuple[OutputFile, ...] = field(metadata=describe("by path"))
    whole: bool = field(metadata=describe("whether these are all: of very many, some are left out", example=True))

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with its files."""
        return super().from_json({**body, "files": tuple(OutputFile.from_json(one) for one in body["files"])})


@dataclass(frozen=True)
class ConsideredNode(Record):
    """A node that took work when a task was given its own."""

    node_name: str = field(metadata=describe(example="127.0.1.11"))
    allowed: bool = field(metadata=describe("whether the task may run there", example=True))
    has_room: bool = field(metadata=describe("whether it had room for the task", example=True))
    free_mb: int = field(metadata=describe("of memory that it had left", unit="MB", example=4096))
    free_vcores: int = field(metadata=describe("cores that it had left", example=2))
    score: float | None = field(metadata=describe("in the order of nodes; null if it has none there", example=0.9))
    ready_seconds: float | None = field(
        default=None,
        metadata=describe("until it would have the task's environment; null without one", unit="seconds", example=2.1),
    )
    preferred: bool = field(
        default=False, metadata=describe("whether YARN was asked for it before others", example=False)
    )


@dataclass(frozen=True)
class NotedValue(Record):
    """A value of a node as the service knew it when a decision was noted."""

    data_name: str = field(metadata=describe(example="cpu_free_ratio"))
    node_name: str = field(metadata=describe(example="127.0.1.11"))
    data_value: str | None = field(metadata=describe("null without any", example="0.93"))
    age: float | None = field(metadata=describe("since it was true", unit="seconds", example=1.5))
    is_fresh: bool = field(metadata=describe("whether it counted", example=True))


@dataclass(frozen=True)
class TaskDecision(Record):
    """Why a task runs where it runs: what was known of the nodes when it was seen there first."""

    task_id: str = field(metadata=describe(example=EXAMPLE_ID))
    attempt: int = field(metadata=describe("which start of it", example=1))
    node_name: str = field(metadata=describe("where it runs", example="127.0.1.11"))
    at: float = field(metadata=describe("when this was seen", **_MOMENT))
    order: str | None = field(
        metadata=describe("order of nodes that YARN's plug-in went by; null where there is none", example="first")
    )
    age_seconds: float | None = field(
        metadata=describe("of the values that it was made from; null without values", unit="seconds", example=0.4)
    )
    nodes: tuple[ConsideredNode, ...] = field(metadata=describe("those that took work, by score"))
    said: str = field(metadata=describe("in words", example="2 of 2 nodes may run it, of which 1 had room."))
    values: tuple[NotedValue, ...] = field(
        default=(), metadata=describe("of those nodes, by which any order of the service's --policy-file judges them")
    )

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with its nodes, and their values if it has some."""
        nodes, values = map(ConsideredNode.from_json, body["nodes"]), map(NotedValue.from_json, body.get("values", ()))
        return super().from_json({**body, "nodes": tuple(nodes), "values": tuple(values)})


@dataclass(frozen=True)
class TaskList(Record):
    """Tasks, newest first."""

    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class TaskCount(Record):
    """How many tasks there are of a sort, whosever they are."""

    count: int = field(metadata=describe("tasks", example=2))


@dataclass(frozen=True)
class GoneTaskList(Record):
    """Tasks that were forgotten, and have files on the cluster."""

    task_ids: tuple[str, ...] = field(metadata=describe("whose files are to go", example=[EXAMPLE_ID]))

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_ids", tuple(self.task_ids))


@dataclass(frozen=True)
class TaskFiles(Record):
    """A tar archive that the service keeps for tasks."""

    sha256: str = field(metadata=describe("of the archive, by which tasks name it", example="0f" * 32))
    size_bytes: int = field(metadata=describe("that it has", unit="bytes", example=10_240))
