"""What travels between programs, nodes and the service, as plain frozen records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from infosvc.wire.errors import InvalidInput
from infosvc.wire.fields import COUNT, LARGEST, POSITIVE, SECONDS, Limits, Record, describe

NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$")
NODE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")

LONGEST_VALUE = 65_535
MOST_RUNS = 10_000
MOST_EMITTED = 1_000

_A_NAME = describe(example="load_1m")
_A_NODE = describe("HDFS and YARN host name", example="127.0.1.11")
_NAMES = Limits(longest=1_000, unique=True)
_EACH_NAME = Limits(pattern=NAME.pattern)
_SHA_FORM = "64 hexadecimal digits in lower case, as sha256sum prints them"
_SHA256 = Limits(longest=64, pattern="^[0-9a-f]{64}$", form=_SHA_FORM)
_VALUE = Limits(longest=LONGEST_VALUE)
_AGENT_VERSION = describe(
    "version of the agent; empty as long as none said it", example="0.1.0", limits=Limits(longest=64)
)
_INTERVAL = describe("between two runs", unit="seconds", limits=POSITIVE, example=5)
_TIMEOUT = describe("until a run is killed", unit="seconds", limits=POSITIVE, example=10)
_LAST_OUTCOME = describe("of the last run")
_COMPLAINT = describe("what the last run complained")


class Kind(StrEnum):
    """Who produces a value: a collector or processor in a run slot, a program that writes when it likes, or the
    run of another producer that names it in its `emits`."""

    COLLECTOR = "collector"
    PROCESSOR = "processor"
    PROGRAM = "program"
    EMITTED = "emitted"

    @property
    def in_slot(self) -> bool:
        """Whether a run slot runs it."""
        return self in (Kind.COLLECTOR, Kind.PROCESSOR)


class Scope(StrEnum):
    """Where a producer runs: on every node, or on as many nodes of the cluster as it has replicas."""

    NODE = "node"
    CLUSTER = "cluster"


class Outcome(StrEnum):
    """How one run in a slot ended. Only `ok` brings a value; the others leave the old one and its age."""

    OK = "ok"
    NO_DATA = "no_data"  # exit 3: nothing to measure here and now
    FAILED = "failed"  # any other exit status, or output that is not a value
    TIMEOUT = "timeout"  # the process group was killed
    REFUSED = "refused"  # the file is not one that was put on the node for this
    QUARANTINED = "quarantined"  # failed so often in a row that its slot rests until somebody lifts that

    @property
    def is_bad(self) -> bool:
        """Whether readers must know that the last run went wrong."""
        return self not in (Outcome.OK, Outcome.NO_DATA)


class State(StrEnum):
    """What a reader may think of a value: young enough, too old, or its last run went wrong."""

    FRESH = "fresh"
    STALE = "stale"
    FAILED = "failed"


class Role(StrEnum):
    """What a token may do."""

    READER = "reader"  # read everything but tokens and the audit log
    AGENT = "agent"  # read, and report for its own node
    PROCESSOR = "processor"  # read, and write values
    SCHEDULER = "scheduler"  # read, write values, start and stop slots
    USER = "user"  # read, and have tasks of its own
    SUBMITTER = "submitter"  # read, tasks too, and say what becomes of them
    TASK = "task"  # read, track runs for its owner, and say how far one task is; the service makes these tokens itself
    ADMIN = "admin"  # everything


@dataclass(frozen=True)
class Producer(Record):
    """One row of t_DP: a data name and the command that produces it.

    `cmd` never sees a shell. A run of a producer with `emits` prints one `name value` line for each of these names.
    """

    data_name: str = field(metadata=describe(example="cpu_count", sent=False))
    cmd: str = field(
        metadata=describe(
            "command, split into argv without a shell: an absolute path, or one below what is pushed to the nodes; a "
            "program needs none",
            limits=Limits(longest=4096),
            example="scripts/cpu_count.sh",
            required=False,
        )
    )
    time_max: float = field(metadata=_INTERVAL)
    kind: Kind = field(default=Kind.COLLECTOR, metadata=describe("who brings the value; a program is in no slot"))
    scope: Scope = field(default=Scope.NODE, metadata=describe("on every node, or on as many as `replicas`"))
    replicas: int = field(
        default=1,
        metadata=describe("on how many nodes a cluster producer runs", limits=Limits(least=1, most=100_000), example=1),
    )
    timeout: float = field(default=10.0, metadata=_TIMEOUT)
    ttl: float | None = field(
        default=None,
        metadata=describe(
            "until a value is stale; by default 3 x time_max",
            unit="seconds",
            limits=POSITIVE,
            example=15,
            nullable=False,
        ),
    )
    unit: str = field(
        default="",
        metadata=describe("unit of the value, in base units", limits=Limits(longest=64), example="processors"),
    )
    help: str = field(
        default="",
        metadata=describe(
            "what the value says",
            limits=Limits(longest=4096),
            example="Processors that the node has",
            flag="--help-text",
        ),
    )
    keep: float = field(
        default=0.0, metadata=describe("kept as history", unit="seconds", limits=SECONDS, example=86400)
    )
    sha256: str | None = field(
        default=None,
        metadata=describe("checksum that the command's file must have", limits=_SHA256, example="0f" * 32),
    )
    emits: tuple[str, ...] = field(
        default=(),
        metadata=describe(
            "names of which a run prints lines `name value`; a line of the producer's own name brings its own value, "
            "which without one is how many names came",
            limits=_NAMES,
            each=_EACH_NAME,
            example=[],
        ),
    )
    inputs: tuple[str, ...] = field(
        default=(),
        metadata=describe(
            "names whose changes run it at once",
            limits=_NAMES,
            each=_EACH_NAME,
            example=["cpu_free_ratio"],
            flag="--input",
        ),
    )
    version: int = field(default=0, metadata=describe("grows with each change; for If-Match", example=1, sent=False))

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))
        object.__setattr__(self, "emits", tuple(self.emits))
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "scope", Scope(self.scope))
        if self.ttl is None:
            object.__setattr__(self, "ttl", min(3 * self.time_max, LARGEST))


@dataclass(frozen=True)
class Datum(Record):
    """The latest value of one data name on one node, with its age in seconds at the time of the answer."""

    data_name: str = field(metadata=_A_NAME)
    node_name: str = field(metadata=describe(example="127.0.1.11"))
    data_value: str | None = field(metadata=describe("as the producer printed it; null as long as no run brought one"))
    age: float | None = field(metadata=describe("since it was true", unit="seconds", example=1.5))
    ttl: float = field(metadata=describe("until it is stale", unit="seconds", example=15))
    state: State
    outcome: Outcome = field(metadata=_LAST_OUTCOME)
    reason: str | None = field(default=None, metadata=_COMPLAINT)
    unit: str = field(default="", metadata=describe("unit of the value, in base units", example="processes"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", State(self.state))
        object.__setattr__(self, "outcome", Outcome(self.outcome))

    def number(self) -> float:
        """The value as a finite number; InvalidInput when it is not a number."""
        try:
            number = float(self.data_value or "")
        except ValueError:
            number = float("nan")
        if number - number != 0:  # true for NaN and both infinities
            raise InvalidInput(
                f"the value of {self.data_name} on {self.node_name} is not a number: {self.data_value!r}",
                "data_value",
            )
        return number


@dataclass(frozen=True)
class Node(Record):
    """A machine: its HDFS and YARN host name, where its agent listens, and what was last heard of it."""

    node_name: str = field(metadata=describe("HDFS and YARN host name", example="127.0.1.11", sent=False))
    address: str = field(
        metadata=describe("HOST:PORT of the agent", limits=Limits(longest=255), example="127.0.1.11:8410")
    )
    state: str = field(
        default="stale",
        metadata=describe("lost after 15 s of silence", limits=Limits(choices=("ready", "stale", "lost")), sent=False),
    )
    last_seen: float | None = field(
        default=None,
        metadata=describe(
            "of the last report; null before the first", unit="Unix seconds", example=1700000000.0, sent=False
        ),
    )
    agent_version: str = field(default="", metadata=_AGENT_VERSION)
    dropped: int = field(
        default=0, metadata=describe("runs that the agent has lost since its start", example=0, sent=False)
    )


@dataclass(frozen=True)
class Slot(Record):
    """Wanted state of one producer on one node, and how its last run ended.

    `epoch` grows when somebody lifts its quarantine; the agent then starts counting failures anew.
    """

    data_name: str = field(metadata=_A_NAME)
    cmd: str = field(metadata=describe(example="scripts/load_1m.sh"))
    interval: float = field(metadata=_INTERVAL)
    timeout: float = field(default=10.0, metadata=_TIMEOUT)
    running: bool = field(default=True, metadata=describe("what is wanted", example=True))
    sha256: str | None = field(default=None, metadata=describe("checksum that the command's file must have"))
    scope: Scope = Scope.NODE
    emits: tuple[str, ...] = field(default=(), metadata=describe(example=[]))
    inputs: tuple[str, ...] = field(default=(), metadata=describe(example=[]))
    epoch: int = field(default=0, metadata=describe("how often its quarantine was lifted", example=0))
    skipped: int = field(default=0, metadata=describe("ticks that it has missed", example=0))
    outcome: Outcome | None = field(
        default=None, metadata=describe("of the last run; null before the first", example="ok")
    )
    duration: float | None = field(
        default=None, metadata=describe("that the last run took", unit="seconds", example=0.1)
    )
    reason: str | None = field(default=None, metadata=_COMPLAINT)
    age: float | None = field(default=None, metadata=describe("since the last run", unit="seconds", example=1.5))

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", Scope(self.scope))
        object.__setattr__(self, "emits", tuple(self.emits))
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if self.outcome is not None:
            object.__setattr__(self, "outcome", Outcome(self.outcome))


@dataclass(frozen=True)
class Wanted:
    """All slots of one node; an agent knows by the version when it is behind.

    `node_name` tells an agent that the notice is meant for it, whatever address it came to.
    """

    node_name: str = field(metadata=_A_NODE)
    version: int = field(metadata=describe("grows with each change", example=1700000003))
    slots: tuple[Slot, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the service and the master's notice write it."""
        return {
            "node_name": self.node_name,
            "version": self.version,
            "slots": [slot.to_json() for slot in self.slots],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Wanted:
        """Inverse of `to_json`."""
        slots = tuple(Slot.from_json(slot) for slot in body["slots"])
        return cls(str(body["node_name"]), int(body["version"]), slots)


@dataclass(frozen=True)
class Run(Record):
    """One run that ended in a slot. What is not registered is left out, so the form of its name needs no check."""

    data_name: str = field(metadata=describe(limits=Limits(longest=128), example="load_1m"))
    outcome: Outcome
    duration: float | None = field(metadata=describe("the run took", unit="seconds", limits=SECONDS, example=0.1))
    value: str | None = field(
        default=None,
        metadata=describe(
            "what it printed, with outcome ok; with emits may be left out: the count of values",
            limits=_VALUE,
            example="0.93",
        ),
    )
    reason: str | None = field(default=None, metadata=describe("last lines of stderr", limits=_VALUE))
    age: float = field(default=0.0, metadata=describe("since the run", unit="seconds", limits=SECONDS))
    exit_status: int | None = field(
        default=None, metadata=describe("negative for a signal", limits=Limits(least=-(2**31), most=2**31 - 1))
    )
    skipped: int = field(
        default=0,
        metadata=describe("ticks missed since the run before", limits=COUNT),
    )
    values: Mapping[str, str] | None = field(
        default=None,
        metadata=describe(
            "what a producer with emits printed: an object of name and text",
            limits=Limits(longest=MOST_EMITTED),
            keys=Limits(longest=128),
            each=_VALUE,
        ),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", Outcome(self.outcome))


@dataclass(frozen=True)
class Report:
    """One batch from an agent."""

    boot: str = field(
        metadata=describe("names this start of the agent", limits=Limits(shortest=1, longest=64), example="b1")
    )
    sequence: int = field(
        metadata=describe(
            "grows from 1 within a boot; a repeated one is not taken twice",
            limits=Limits(least=0, most=2**62),
            example=1,
        )
    )
    agent_version: str = field(default="", metadata=_AGENT_VERSION)
    runs: Sequence[Run] = field(default=(), metadata=describe(limits=Limits(longest=MOST_RUNS), required=True))
    dropped: int = field(
        default=0,
        metadata=describe("runs that the agent lost since its start, as it could not send them", limits=COUNT),
    )

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {
            "boot": self.boot,
            "sequence": self.sequence,
            "agent_version": self.agent_version,
            "dropped": self.dropped,
            "runs": [run.to_json() for run in self.runs],
        }


@dataclass(frozen=True)
class Receipt(Record):
    """The answer to a report; a processor whose input's number grew should run."""

    wanted_version: int = field(metadata=describe("the wanted state that is current", example=1700000003))
    inputs: Mapping[str, int] = field(
        default_factory=dict,
        metadata=describe(
            "how often each input of the node's cluster-wide processors has changed anywhere", example={"load_1m": 12}
        ),
    )


def check_name(value: str, field: str = "data_name") -> str:
    """Return a valid data name unchanged; InvalidInput tells what is allowed."""
    if not NAME.fullmatch(value):
        raise InvalidInput(
            f"{field} {value!r} is not allowed",
            field,
            remedy="letters, digits and _.:- only, starting with a letter or _, at most 128 characters",
        )
    return value


def check_node_name(value: str, field: str = "node_name") -> str:
    """Return a valid node name unchanged; InvalidInput tells what is allowed."""
    if not NODE_NAME.fullmatch(value):
        raise InvalidInput(
            f"{field} {value!r} is not allowed", field, remedy="a host name or address, at most 128 characters"
        )
    return value
