"""What travels between programs, nodes and the service, as plain frozen records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import Enum, StrEnum
from typing import Any, Self

from infosvc.wire.errors import InvalidInput

NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$")
NODE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")


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
    FAILED = "failed"  # any other exit status, or output that is no value
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
    ADMIN = "admin"  # everything


class Record:
    """Shared by all records: to and from the JSON objects of the wire."""

    def to_json(self) -> dict[str, Any]:
        """Field name -> value; enums as their text."""
        record: Any = self
        return {k: v.value if isinstance(v, Enum) else v for k, v in asdict(record).items()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object; unknown keys are ignored so that a newer peer may add some."""
        record: Any = cls
        known = {each.name for each in fields(record)}
        built: Self = record(**{k: v for k, v in body.items() if k in known})
        return built


@dataclass(frozen=True)
class Producer(Record):
    """One row of t_DP: a data name and the command that produces it.

    `time_max` seconds between two runs, `timeout` seconds until a run is killed, `ttl` seconds until a value
    is stale (default 3 x time_max), `keep` seconds of history. `cmd` is split into argv and never sees a shell;
    its first word is an absolute path, or a path below the directory pushed to the node. A run of a producer with
    `emits` prints one `name value` line for each of these names, and one of its own name for its own value, which
    without that line is how many came; a change of one of its `inputs` runs it at once.
    """

    data_name: str
    cmd: str
    time_max: float
    kind: Kind = Kind.COLLECTOR
    scope: Scope = Scope.NODE
    replicas: int = 1
    timeout: float = 10.0
    ttl: float | None = None
    unit: str = ""
    help: str = ""
    keep: float = 0.0
    sha256: str | None = None
    emits: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    version: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))
        object.__setattr__(self, "emits", tuple(self.emits))
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "scope", Scope(self.scope))
        if self.ttl is None:
            object.__setattr__(self, "ttl", 3 * self.time_max)


@dataclass(frozen=True)
class Datum(Record):
    """The latest value of one data name on one node, with its age in seconds at the time of the answer.

    `data_value` is text as the producer printed it, or None when no run has brought one yet.
    """

    data_name: str
    node_name: str
    data_value: str | None
    age: float | None
    ttl: float
    state: State
    outcome: Outcome
    reason: str | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", State(self.state))
        object.__setattr__(self, "outcome", Outcome(self.outcome))

    def number(self) -> float:
        """The value as a finite number; InvalidInput when it is none."""
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
    """A machine: its HDFS and YARN host name, where its agent listens, and what was last heard of it.

    `dropped` counts the runs that its agent has lost since its start, because the service was away for too long.
    """

    node_name: str
    address: str
    state: str = "stale"
    last_seen: float | None = None
    agent_version: str = ""
    dropped: int = 0


@dataclass(frozen=True)
class Slot(Record):
    """Wanted state of one producer on one node, and how its last run ended.

    `epoch` grows when somebody lifts its quarantine; the agent then starts counting failures anew. `skipped` counts
    the ticks that it has missed.
    """

    data_name: str
    cmd: str
    interval: float
    timeout: float = 10.0
    running: bool = True
    sha256: str | None = None
    scope: Scope = Scope.NODE
    emits: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    epoch: int = 0
    skipped: int = 0
    outcome: Outcome | None = None
    duration: float | None = None
    reason: str | None = None
    age: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", Scope(self.scope))
        object.__setattr__(self, "emits", tuple(self.emits))
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if self.outcome is not None:
            object.__setattr__(self, "outcome", Outcome(self.outcome))


@dataclass(frozen=True)
class Wanted:
    """All slots of one node; `version` grows with every change, so an agent knows when it is behind.

    `node_name` tells an agent that the notice is meant for it, whatever address it came to.
    """

    node_name: str
    version: int
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
    """One run that ended in a slot; `age` seconds ago, `duration` seconds long.

    `values` holds what a producer with `emits` printed of these names. `skipped` counts the ticks that passed since
    the run before because it was still at work or no place was free.
    """

    data_name: str
    outcome: Outcome
    duration: float
    value: str | None = None
    reason: str | None = None
    age: float = 0.0
    exit_status: int | None = None
    skipped: int = 0
    values: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", Outcome(self.outcome))


@dataclass(frozen=True)
class Report:
    """One batch from an agent: `boot` names the agent's start, `sequence` grows from 1 within it.

    `dropped` counts the runs that the agent lost since its start because it could not send them for too long.
    """

    boot: str
    sequence: int
    agent_version: str = ""
    runs: tuple[Run, ...] = ()
    dropped: int = 0

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
    """The answer to a report: which wanted state is current, and how often each input of the node's cluster-wide
    processors has changed anywhere (a processor whose numbers grew should run)."""

    wanted_version: int
    inputs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PastRun(Record):
    """One line of a slot's log: when a run ended (Unix seconds by the node's clock), how, and what it complained."""

    ended_at: float
    outcome: Outcome
    duration: float
    exit_status: int | None = None
    value: str | None = None
    stderr: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", Outcome(self.outcome))


@dataclass(frozen=True)
class Token(Record):
    """Who may call: `token_id` is public, the token itself is shown once and kept as its SHA-256 only.

    Times are Unix seconds. A token of role agent is bound to `node_name`.
    """

    token_id: str
    name: str
    role: Role
    node_name: str | None = None
    created_at: float = 0.0
    expires_at: float | None = None
    revoked_at: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", Role(self.role))


@dataclass(frozen=True)
class AuditEntry(Record):
    """One change or refused call; `hash` covers the entry and the hash before it, so none can be taken out."""

    sequence: int
    at: float
    who: str
    address: str
    call: str
    status: int
    detail: str
    hash: str


@dataclass(frozen=True)
class Event(Record):
    """One thing that happened: `type` is value, node, slot, producer or gap; `data` its fields."""

    id: int
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class History(Record):
    """What one name was on one node over a window: statistics of the numbers in it, and every point.

    `points` are (Unix seconds, value as text), oldest first; without a number in the window the statistics are None.
    """

    data_name: str
    node_name: str
    unit: str
    since: float
    until: float
    count: int = 0
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    points: tuple[tuple[float, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple((float(at), str(value)) for at, value in self.points))


def check_name(value: str, field: str = "data_name") -> str:
    """Return a valid data name unchanged; InvalidInput tells what is allowed."""
    if not NAME.fullmatch(value):
        raise InvalidInput(
            f"{field} {value!r} is not allowed: letters, digits and _.:- only, starting with a letter or _, "
            "at most 128 characters",
            field,
        )
    return value


def check_node_name(value: str) -> str:
    """Return a valid node name unchanged; InvalidInput tells what is allowed."""
    if not NODE_NAME.fullmatch(value):
        raise InvalidInput(
            f"node_name {value!r} is not allowed: a host name or address, at most 128 characters", "node_name"
        )
    return value
