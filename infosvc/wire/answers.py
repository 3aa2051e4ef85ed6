"""What the service answers beside the records that are also sent to it: lists, logs, history, tokens, scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from infosvc.wire.fields import Limits, Record, describe
from infosvc.wire.records import Datum, Node, Outcome, Producer, Role

_NAME = describe(example="load_1m")
_NODE = describe(example="127.0.1.11")
_UNIT = describe(example="processes")
_SINCE = describe("when the first step began", unit="Unix seconds", example=1699996400.0)
_STEP = describe("of one step", unit="seconds", example=30.0)
_FULL = describe("whether the service holds as many curves as it may, so that new numbers have none", example=False)
_OF_NUMBERS = describe("of the numbers; null when there is none", example=0.93)


@dataclass(frozen=True)
class Producers(Record):
    """All producers."""

    producers: tuple[Producer, ...]


@dataclass(frozen=True)
class Nodes(Record):
    """All machines."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Values(Record):
    """One name on all nodes."""

    data_name: str = field(metadata=_NAME)
    unit: str = field(metadata=_UNIT)
    time: float = field(metadata=describe("when the ages were true", unit="Unix seconds", example=1700000000.0))
    values: tuple[Datum, ...] = field(metadata=describe("by node", row=("Value", ("data_name", "unit"))))


@dataclass(frozen=True)
class ManyValues(Record):
    """Several names on all nodes."""

    data: tuple[Values, ...]


@dataclass(frozen=True)
class History(Record):
    """What one name was on one node over a window: statistics of the numbers in it, and every point."""

    data_name: str = field(metadata=_NAME)
    node_name: str = field(metadata=_NODE)
    unit: str = field(metadata=_UNIT)
    since: float = field(metadata=describe(unit="Unix seconds", example=1699996400.0))
    until: float = field(metadata=describe(unit="Unix seconds", example=1700000000.0))
    count: int = field(default=0, metadata=describe("how many points there are", example=1))
    min: float | None = field(default=None, metadata=_OF_NUMBERS)
    max: float | None = field(default=None, metadata=_OF_NUMBERS)
    mean: float | None = field(default=None, metadata=_OF_NUMBERS)
    p50: float | None = field(default=None, metadata=_OF_NUMBERS)
    p90: float | None = field(default=None, metadata=_OF_NUMBERS)
    p99: float | None = field(default=None, metadata=_OF_NUMBERS)
    points: tuple[tuple[float, str], ...] = field(
        default=(),
        metadata=describe("Unix seconds and value as text, oldest first", example=[[1700000000.0, "0.93"]]),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple((float(at), str(value)) for at, value in self.points))


@dataclass(frozen=True)
class Curve(Record):
    """The last hour of a number, in steps."""

    data_name: str = field(metadata=_NAME)
    unit: str = field(metadata=_UNIT)
    numbers: tuple[float | None, ...] = field(
        metadata=describe("the last of each step, oldest first; null where none came", example=[0.91, None, 0.93])
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", tuple(self.numbers))


@dataclass(frozen=True)
class Hour(Curve):
    """The last hour of one name on one node; without a curve it has no numbers."""

    node_name: str = field(metadata=_NODE)
    since: float = field(metadata=_SINCE)
    step: float = field(metadata=_STEP)
    full: bool = field(metadata=_FULL)


@dataclass(frozen=True)
class ClusterHour(Hour):
    """The last hour of one name over all nodes that have it."""

    node_name: str = field(metadata=describe("in place of a node's name", limits=Limits(choices=("*",))))
    of: str | None = field(
        metadata=describe("what the numbers are shares of; null if they are sums", example="memory_total_bytes")
    )


@dataclass(frozen=True)
class NodeHour(Record):
    """The last hour of every number of one node."""

    node_name: str = field(metadata=_NODE)
    since: float = field(metadata=_SINCE)
    step: float = field(metadata=_STEP)
    full: bool = field(metadata=_FULL)
    curves: tuple[Curve, ...] = field(metadata=describe("by data name, of those that have a curve"))

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with its curves."""
        return super().from_json({**body, "curves": tuple(Curve.from_json(curve) for curve in body["curves"])})


@dataclass(frozen=True)
class Placement(Record):
    """Where the service runs a producer of scope cluster."""

    data_name: str = field(metadata=describe(example="access_cost"))
    node_name: str = field(metadata=describe(limits=Limits(choices=("*",))))
    running: bool = field(metadata=describe(example=True))
    interval: float = field(metadata=describe("between two runs", unit="seconds", example=5))
    replicas: int = field(metadata=describe("on how many nodes it should run", example=1))
    nodes: tuple[str, ...] = field(metadata=describe("where the service runs it now", example=["127.0.1.11"]))


@dataclass(frozen=True)
class PastRun(Record):
    """One line of a slot's log: when a run ended, how, and what it complained."""

    ended_at: float = field(metadata=describe("by the node's clock", unit="Unix seconds", example=1700000000.0))
    outcome: Outcome
    duration: float = field(metadata=describe(unit="seconds", example=0.1))
    exit_status: int | None = field(
        default=None, metadata=describe("negative for a signal, null if it never started", example=0)
    )
    value: str | None = field(default=None, metadata=describe("what it printed", example="0.93"))
    stderr: str = field(default="", metadata=describe("the end of what it complained", example=""))

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", Outcome(self.outcome))


@dataclass(frozen=True)
class SlotLog(Record):
    """The last runs of a slot."""

    node_name: str = field(metadata=_NODE)
    data_name: str = field(metadata=_NAME)
    runs: tuple[PastRun, ...] = field(metadata=describe("newest first"))


@dataclass(frozen=True)
class Token(Record):
    """Who may call: the token itself is shown once and kept as its SHA-256 only; one of role agent is for one node."""

    token_id: str = field(metadata=describe("its public name", example="9f86d081884c7d65"))
    name: str = field(metadata=describe("what the audit log calls its holder", example="grafana"))
    role: Role = field(metadata=describe("what it may do"))
    node_name: str | None = field(
        default=None, metadata=describe("the node whose agent it is for, or whose values alone it reads")
    )
    created_at: float = field(
        default=0.0, metadata=describe("when it was made", unit="Unix seconds", example=1700000000.0)
    )
    expires_at: float | None = field(default=None, metadata=describe("from when it is refused; null for never"))
    revoked_at: float | None = field(default=None, metadata=describe("when it was taken back; null if it was not"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", Role(self.role))


@dataclass(frozen=True)
class NewToken(Token):
    """A token that was just made."""

    token: str = field(default="", metadata=describe("shown this once", example="nw_reader_TEXT-THAT-IS-SECRET"))


@dataclass(frozen=True)
class TokenByTicket(Record):
    """What a ticket of Kerberos is exchanged for; nothing of it is kept, so it cannot be revoked."""

    token: str = field(metadata=describe("shown this once", example="nw_ticket_TEXT-THAT-IS-SECRET"))
    name: str = field(metadata=describe("the user: the short name of who has the ticket", example="alice"))
    role: Role = field(metadata=describe("what it may do", example="user"))
    expires_at: float = field(metadata=describe("from when it is refused", unit="Unix seconds", example=1700043200.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", Role(self.role))


@dataclass(frozen=True)
class TokenList(Record):
    """All tokens."""

    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class AuditEntry(Record):
    """One change, log-in or refused call; `hash` covers the entry and the hash before it, so none can be taken out."""

    sequence: int = field(metadata=describe("grows by one from 1", example=1))
    at: float = field(metadata=describe(unit="Unix seconds", example=1700000000.0))
    who: str = field(metadata=describe("name and id of the token", example="first admin"))
    address: str = field(metadata=describe("where the call came from", example="127.0.0.1"))
    call: str = field(metadata=describe(example="PUT /api/v1/nodes/worker1"))
    status: int = field(metadata=describe("how the call was answered", example=200))
    detail: str = field(
        metadata=describe(
            "the body of a change, of a value its length and hash; why a call was refused",
            example='{"address": "127.0.1.11:8410"}',
        )
    )
    hash: str = field(
        metadata=describe(
            "SHA-256 of this entry and the hash before it; one made with a key begins with k", example="0f" * 32
        )
    )


@dataclass(frozen=True)
class AuditEntryList(Record):
    """A page of the audit log."""

    entries: tuple[AuditEntry, ...]


@dataclass(frozen=True)
class AuditPruned(Record):
    """What a call removed of the audit log: everything up to this entry, NUMBER:HASH."""

    last: str | None = field(metadata=describe("null when no entry is so old", example=f"20000:{'0f' * 32}"))


@dataclass(frozen=True)
class Event(Record):
    """One thing that happened: `type` is value, node, slot, producer, job, task or gap; `data` its fields."""

    id: int
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class WhoCalls(Record):
    """For whom a browser's cookie speaks."""

    name: str = field(metadata=describe(example="first admin"))
    role: Role | None = field(metadata=describe("null when reading takes a token", example="admin"))
    csrf_token: str | None = field(
        default=None, metadata=describe("for X-CSRF-Token", example="kJ0b3VwWm1c8bEhsY1VfT2x3c2VyZ2Zk")
    )
    expires_at: float | None = field(
        default=None, metadata=describe("when the session ends", unit="Unix seconds", example=1700043200.0)
    )
    takes_tickets: bool = field(default=False, metadata=describe("whether a ticket of Kerberos logs in", example=False))


@dataclass(frozen=True)
class Part(Record):
    """What one value adds to a node's score; without a value the first three are null."""

    data_name: str = field(metadata=describe(example="cpu_free_ratio"))
    data_value: str | None = field(metadata=describe("null without any", example="0.93"))
    age: float | None = field(metadata=describe("old; null without any", unit="seconds", example=1.5))
    state: str | None = field(metadata=describe("null without any", example="fresh"))
    part: float = field(metadata=describe("between 0 and 1", example=0.93))
    weight: float = field(metadata=describe(example=1.0))


@dataclass(frozen=True)
class Condition(Record):
    """What must hold of a node, or it goes last."""

    data_name: str = field(metadata=describe("what it is about", example="cpu_free_ratio"))
    condition: str = field(metadata=describe(example="cpu_free_ratio >= 0.1"))
    holds: bool = field(metadata=describe(example=True))


@dataclass(frozen=True)
class ScoredNode(Record):
    """The score that YARN's plug-in gives one node."""

    node_name: str = field(metadata=_NODE)
    score: float = field(metadata=describe("between 0 and 1", example=0.87))
    last: bool = field(metadata=describe("whether it goes behind all others", example=False))
    parts: tuple[Part, ...]
    conditions: tuple[Condition, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with what the score is made of."""
        parts, conditions = map(Part.from_json, body["parts"]), map(Condition.from_json, body["conditions"])
        return super().from_json({**body, "parts": tuple(parts), "conditions": tuple(conditions)})


@dataclass(frozen=True)
class ExplainedPolicy(Record):
    """One policy of the settings file."""

    policy: str = field(metadata=describe(example="first"))
    nodes: tuple[ScoredNode, ...] = field(metadata=describe("from best to worst"))

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with its nodes."""
        return super().from_json({**body, "nodes": tuple(map(ScoredNode.from_json, body["nodes"]))})


@dataclass(frozen=True)
class Explained(Record):
    """Every policy of the settings file."""

    policies: tuple[ExplainedPolicy, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object with its policies."""
        return super().from_json({**body, "policies": tuple(map(ExplainedPolicy.from_json, body["policies"]))})

    @property
    def data_names(self) -> set[str]:
        """All that scores are worked out from."""
        nodes = [node for policy in self.policies for node in policy.nodes[:1]]
        parts = {one.data_name for node in nodes for one in node.parts}
        return parts | {one.data_name for node in nodes for one in node.conditions}
