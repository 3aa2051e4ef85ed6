"""What travels between programs, nodes and the service, as plain frozen records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum, StrEnum
from typing import Any, Self

from infosvc.errors import InvalidInput

NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$")
NODE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")


class Kind(StrEnum):
    """Who produces a value: a collector or processor in a run slot, or a program that writes when it likes."""

    COLLECTOR = "collector"
    PROCESSOR = "processor"
    PROGRAM = "program"


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


class State(StrEnum):
    """What a reader may think of a value: young enough, too old, or its last run went wrong."""

    FRESH = "fresh"
    STALE = "stale"
    FAILED = "failed"


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
        known = {f.name for f in fields(record)}
        built: Self = record(**{k: v for k, v in body.items() if k in known})
        return built


@dataclass(frozen=True)
class Producer(Record):
    """One row of t_DP: a data name and the command that produces it.

    `time_max` seconds between two runs, `timeout` seconds until a run is killed, `ttl` seconds until a value
    is stale (default 3 x time_max), `keep` seconds of history. `cmd` is split into argv and never sees a shell;
    its first word is an absolute path, or a path below the directory pushed to the node.
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
    version: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))
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
    """A machine: its HDFS and YARN host name, where its agent listens, and what was last heard of it."""

    node_name: str
    address: str
    state: str = "stale"
    last_seen: float | None = None
    agent_version: str = ""


@dataclass(frozen=True)
class Slot(Record):
    """Wanted state of one producer on one node, and how its last run ended."""

    data_name: str
    cmd: str
    interval: float
    timeout: float = 10.0
    running: bool = True
    sha256: str | None = None
    outcome: Outcome | None = None
    duration: float | None = None
    reason: str | None = None
    age: float | None = None

    def __post_init__(self) -> None:
        if self.outcome is not None:
            object.__setattr__(self, "outcome", Outcome(self.outcome))


@dataclass(frozen=True)
class Wanted:
    """All slots of one node; `version` grows with every change, so an agent knows when it is behind."""

    version: int
    slots: tuple[Slot, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the service and the master's notice write it."""
        return {"version": self.version, "slots": [slot.to_json() for slot in self.slots]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Wanted:
        """Inverse of `to_json`."""
        return cls(int(body["version"]), tuple(Slot.from_json(slot) for slot in body["slots"]))


@dataclass(frozen=True)
class Run(Record):
    """One run that ended in a slot; `age` seconds ago, `duration` seconds long."""

    data_name: str
    outcome: Outcome
    duration: float
    value: str | None = None
    reason: str | None = None
    age: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", Outcome(self.outcome))


@dataclass(frozen=True)
class Report:
    """One batch from an agent: `boot` names the agent's start, `sequence` grows from 1 within it."""

    boot: str
    sequence: int
    agent_version: str = ""
    runs: tuple[Run, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        return {
            "boot": self.boot,
            "sequence": self.sequence,
            "agent_version": self.agent_version,
            "runs": [run.to_json() for run in self.runs],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Report:
        """Inverse of `to_json`."""
        return cls(
            str(body["boot"]),
            int(body["sequence"]),
            str(body.get("agent_version", "")),
            tuple(Run.from_json(run) for run in body["runs"]),
        )


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
