"""What a user wants run, as it travels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from infosvc.wire.fields import POSITIVE, PROGRAM_NAME, Limits, Record, describe
from infosvc.wire.records import NODE_NAME

TASK_ID = re.compile(r"^task_[0-9a-f]{16}$")
SHA256 = re.compile(r"^[0-9a-f]{64}$")
DEVICE = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_.-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*$")
IMAGE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9_.:/-]*@)?sha256:[0-9a-f]{64}$")
ENVIRONMENT = "[a-z0-9][a-z0-9._-]{0,63}(@[A-Za-z0-9][A-Za-z0-9._+-]{0,63})?"
"""A name, and a version or nothing for the newest."""
GPU_MODEL = r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$"
GPU_CAPABILITY = r"^[0-9]{1,2}\.[0-9]{1,2}$"
MOST_GPUS = 64
MOST_ARGUMENTS = 1_000
LONGEST_ARGUMENT = 32_768
MOST_VARIABLES = 100
MOST_PREDECESSORS = 100
MOST_NODES = 1_000
LONGEST_PATH = 1_024
LONGEST_URL = 2_000
WEB_ADDRESS = r"^https?://[!-~]+$"
MOST_DATA = 100
MOST_DEVICES = 100
LONGEST_CHANGES = 32_768
EACH_NODE = Limits(longest=128, pattern=NODE_NAME.pattern, form="a host name or address")

_TEXT = Limits(longest=LONGEST_ARGUMENT, pattern=r"^[^\x00]*$", form="text without a NUL character")
_NODES = Limits(longest=MOST_NODES, unique=True)


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
            "the only nodes it may run on; any if empty", limits=_NODES, each=EACH_NODE, example=[], flag="--node"
        ),
    )
    not_nodes: Sequence[str] = field(
        default=(),
        metadata=describe("nodes it may not run on", limits=_NODES, each=EACH_NODE, example=[], flag="--not-node"),
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
    env: str | None = field(
        default=None,
        metadata=describe(
            "environment whose python and python3 the program finds: NAME@VERSION, or latest or a path of HDFS for one "
            "that was published",
            limits=Limits(
                longest=LONGEST_PATH,
                pattern=f"^({ENVIRONMENT}|(hdfs://[^/]*)?/.+)$",
                form="NAME@VERSION, latest or a path of HDFS",
            ),
            example=None,
        ),
    )
    priority: int = field(
        default=0,
        metadata=describe(
            "of what waits in its queue, the highest goes first", limits=Limits(least=0, most=100), example=0
        ),
    )
    move: bool = field(
        default=False,
        metadata=describe(
            "end it and start it again from its checkpoint on a node that runs its program 1.5 times as fast, when one "
            "has room; it needs `program` and `checkpoint`",
            example=False,
        ),
    )
    devices: Sequence[str] = field(
        default=(),
        metadata=describe(
            "devices that it gets with their driver's files, by their names in the CDI files of its node",
            limits=Limits(longest=MOST_DEVICES, unique=True),
            each=Limits(longest=200, pattern=DEVICE.pattern, form="VENDOR/CLASS=NAME"),
            example=[],
            flag="--device",
        ),
    )
    gpus: int = field(
        default=0,
        metadata=describe(
            "GPUs of NVIDIA that it has for itself, as YARN counts them",
            limits=Limits(least=0, most=MOST_GPUS),
            example=0,
        ),
    )
    gpu_model: str | None = field(
        default=None,
        metadata=describe(
            "words that the model's name of each of its GPUs has, such as T4 or A100; any if left out",
            limits=Limits(shortest=1, longest=64, pattern=GPU_MODEL, form="letters, digits, blanks and ._- only"),
            example=None,
        ),
    )
    gpu_memory_mb: int | None = field(
        default=None,
        metadata=describe(
            "of memory that each of its GPUs has or more, of which the card itself may keep 8 %",
            unit="MB",
            limits=Limits(least=1, most=10**7),
            flag="--gpu-memory",
            example=None,
        ),
    )
    gpu_capability: str | None = field(
        default=None,
        metadata=describe(
            "compute capability of CUDA that each of its GPUs has or more, such as 7.5",
            limits=Limits(longest=5, pattern=GPU_CAPABILITY, form="a number such as 7.5"),
            example=None,
        ),
    )

    notify: str | None = field(
        default=None,
        metadata=describe(
            "web address that gets one POST when the task has ended",
            limits=Limits(longest=LONGEST_URL, pattern=WEB_ADDRESS),
            example=None,
        ),
    )

    def __post_init__(self) -> None:
        for name in ("argv", "nodes", "not_nodes", "after", "data", "devices"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
