"""Tasks as they travel: what a user wants run, and what became of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from infosvc.wire.fields import POSITIVE, Limits, Record, answer_of, describe
from infosvc.wire.program_name import PROGRAM_NAME
from infosvc.wire.records import NODE_NAME

TASK_ID = re.compile(r"^task_[0-9a-f]{16}$")
USER_NAME = re.compile(r"^[a-z_][a-z0-9_.-]{0,31}$")
SHA256 = re.compile(r"^[0-9a-f]{64}$")
IMAGE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9_.:/-]*@)?sha256:[0-9a-f]{64}$")
EXAMPLE_KEY = "mnist-1"  # as Idempotency-Key of the first admin, whom the service calls admin, it makes the id below
EXAMPLE_ID = "task_f329d30149018db9"
MOST_ARGUMENTS = 1_000
LONGEST_ARGUMENT = 32_768
MOST_VARIABLES = 100
MOST_PREDECESSORS = 100
MOST_NODES = 1_000
LONGEST_REASON = 2_000
LONGEST_PATH = 1_024
MOST_DATA = 100
LONGEST_CHANGES = 32_768

MOST_TASKS_OF_ANSWER = 1_000
POINTS = 500
MOST_POINTS = 2_000

_TEXT = Limits(longest=LONGEST_ARGUMENT, pattern=r"^[^\x00]*$", form="text without a NUL character")
_NODES = Limits(longest=MOST_NODES, unique=True)
_EACH_NODE = Limits(longest=128, pattern=NODE_NAME.pattern, form="a host name or address")
_MOMENT = {"unit": "Unix seconds", "example": 1700000000.0}


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
class TaskSpec(Record):
    """A program that a user wants run once, in one container of its own."""

    argv: Sequence[str] = field(
        metadata=describe(
            "the program and its arguments; no shell reads them",
            limits=Limits(shortest=1, longest=MOST_ARGUMENTS),
            each=_TEXT,
            example=["python3", "train.py"],
        )
    )
    name: str = field(
        default="",
        metadata=describe("as people call it; the program's if left out", limits=Limits(longest=128), example="mnist"),
    )
    files: str | None = field(
        default=None,
        metadata=describe(
            "SHA-256 of the tar archive that is unpacked beside the program; it is sent before",
            limits=Limits(longest=64, pattern=SHA256.pattern, form="64 hexadecimal digits in lower case"),
            example=None,
        ),
    )
    variables: Mapping[str, str] = field(
        default_factory=dict,
        metadata=describe(
            "environment variables of the program",
            limits=Limits(longest=MOST_VARIABLES),
            keys=Limits(longest=128, pattern="^[A-Za-z_][A-Za-z0-9_]{0,127}$", form="letters, digits and _ only"),
            each=_TEXT,
            example={"SEED": "1"},
            flag="--variable",
        ),
    )
    memory_mb: int = field(
        default=512,
        metadata=describe(
            "of memory it may use", unit="MB", limits=Limits(least=64, most=10**7), flag="--memory", example=512
        ),
    )
    vcores: int = field(
        default=1, metadata=describe("cores it is given", limits=Limits(least=1, most=10_000), example=1)
    )
    queue: str = field(
        default="default",
        metadata=describe(
            "YARN queue",
            example="default",
            limits=Limits(shortest=1, longest=255, pattern=r"^[A-Za-z0-9_.-]+$", form="letters, digits and _.- only"),
        ),
    )
    program: str | None = field(
        default=None,
        metadata=describe(
            "name under which YARN's plug-in orders nodes for it",
            limits=Limits(
                longest=64, pattern=f"^{PROGRAM_NAME.pattern}$", form="small letters, digits and ._- only, at most 64"
            ),
            example="resnet",
        ),
    )
    nodes: Sequence[str] = field(
        default=(),
        metadata=describe(
            "the only nodes it may run on; any if empty", limits=_NODES, each=_EACH_NODE, example=[], flag="--node"
        ),
    )
    not_nodes: Sequence[str] = field(
        default=(),
        metadata=describe("nodes it may not run on", limits=_NODES, each=_EACH_NODE, example=[], flag="--not-node"),
    )
    after: Sequence[str] = field(
        default=(),
        metadata=describe(
            "tasks that must have succeeded before",
            limits=Limits(longest=MOST_PREDECESSORS, unique=True),
            each=Limits(longest=21, pattern=TASK_ID.pattern, form="the id of a task"),
            example=[],
        ),
    )
    output: str | None = field(
        default=None,
        metadata=describe(
            "folder of HDFS that gets what the program leaves in $OUTPUT once it has succeeded; it must not exist",
            limits=Limits(longest=LONGEST_PATH, pattern="^(hdfs://[^/]*)?/.+", form="an absolute path of HDFS"),
            example="hdfs:///out/mnist",
        ),
    )
    attempts: int = field(
        default=1,
        metadata=describe("starts in all, if its node or container fails", limits=Limits(least=1, most=10), example=1),
    )
    seconds_at_most: float | None = field(
        default=None,
        metadata=describe("until it is ended; never if left out", unit="seconds", limits=POSITIVE, example=3600),
    )

    data: Sequence[str] = field(
        default=(),
        metadata=describe(
            "files and folders of HDFS that are copied into $DATA, each under its last name, before the program starts",
            limits=Limits(longest=MOST_DATA, unique=True),
            each=Limits(longest=LONGEST_PATH, pattern="^(hdfs://[^/]*)?/.+", form="an absolute path of HDFS"),
            example=[],
        ),
    )
    checkpoint: str | None = field(
        default=None,
        metadata=describe(
            "folder of HDFS that keeps what the program leaves in $CHECKPOINT while it runs; a later start finds it "
            "there, and so does another task that names it",
            limits=Limits(longest=LONGEST_PATH, pattern="^(hdfs://[^/]*)?/.+", form="an absolute path of HDFS"),
            example=None,
        ),
    )
    array: str | None = field(
        default=None,
        metadata=describe(
            "word that the tasks of one array share",
            limits=Limits(
                shortest=1, longest=64, pattern="^[A-Za-z0-9_.-]{1,64}$", form="letters, digits and _.- only"
            ),
            example=None,
        ),
    )
    at_once: int | None = field(
        default=None,
        metadata=describe(
            "tasks of its array that may be queued or run at once; the others wait. All if left out",
            limits=Limits(least=1, most=10_000),
            example=None,
        ),
    )
    commit: str | None = field(
        default=None,
        metadata=describe(
            "git's commit of the program's files",
            limits=Limits(longest=64, pattern="^[0-9a-f]{7,64}$", form="hexadecimal digits"),
            example=None,
        ),
    )
    changes: str | None = field(
        default=None,
        metadata=describe(
            "how these files differed from that commit, as `git diff` shows it",
            limits=Limits(longest=LONGEST_CHANGES, pattern=r"^[^\x00]*$", form="text without a NUL character"),
            example=None,
        ),
    )
    box: str | None = field(
        default=None,
        metadata=describe(
            "what it runs in: process sees all of the node, docker an image; docker if an image is named, else process",
            limits=Limits(longest=16, pattern="^[a-z]{1,16}$", form="small letters"),
            example=None,
        ),
    )
    image: str | None = field(
        default=None,
        metadata=describe(
            "image that the program sees in place of the node's files, by its id; what is before the @ is for people",
            limits=Limits(
                longest=200, pattern=IMAGE.pattern, form="sha256:, 64 hexadecimal digits, if you like NAME@ before"
            ),
            example=None,
        ),
    )

    def __post_init__(self) -> None:
        for name in ("argv", "nodes", "not_nodes", "after", "data"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


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
        metadata=describe("where it runs or ran", limits=_EACH_NODE, example="127.0.1.11"),
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", TaskState(self.state))

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
class TaskList(Record):
    """Tasks, newest first."""

    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class TaskFiles(Record):
    """A tar archive that the service keeps for tasks."""

    sha256: str = field(metadata=describe("of the archive, by which tasks name it", example="0f" * 32))
    size_bytes: int = field(metadata=describe("that it has", unit="bytes", example=10_240))
