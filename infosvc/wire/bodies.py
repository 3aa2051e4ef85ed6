"""What a call sends in its body and nothing answers; the bodies that are records stand in `records`."""

from __future__ import annotations

from dataclasses import dataclass, field

from infosvc.wire.fields import LARGEST, POSITIVE, Limits, Record, describe
from infosvc.wire.records import LONGEST_VALUE, NODE_NAME, Role

LONGEST_TOKEN = 1024
SHORTEST_INTERVAL = 0.1  # an agent starts nothing more often


@dataclass(frozen=True)
class ValueBody(Record):
    """One value that a program writes."""

    data_value: str = field(
        metadata=describe(
            "text or a finite number; a JSON number is taken as its text",
            limits=Limits(longest=LONGEST_VALUE),
            example="0.93",
        )
    )


@dataclass(frozen=True)
class SlotBody(Record):
    """What is wanted of a slot."""

    running: bool = field(default=True, metadata=describe("false stops it; its value stays and grows old"))
    interval: float | None = field(
        default=None,
        metadata=describe(
            "between two runs here; the producer's time_max if left out",
            unit="seconds",
            limits=Limits(least=SHORTEST_INTERVAL, most=LARGEST),
            example=5,
        ),
    )
    lift: bool = field(default=False, metadata=describe("true ends its quarantine and starts it afresh"))


@dataclass(frozen=True)
class TokenBody(Record):
    """A token that is to be made."""

    name: str = field(
        metadata=describe(
            "what the audit log calls its holder", limits=Limits(shortest=1, longest=128), example="grafana"
        )
    )
    role: Role = field(metadata=describe("what it may do"))
    node_name: str | None = field(
        default=None,
        metadata=describe(
            "the node whose agent it is for; or the only node whose values it reads, for role reader",
            limits=Limits(longest=128, pattern=NODE_NAME.pattern),
        ),
    )
    expires_in: float | None = field(
        default=None,
        metadata=describe("until it is refused; never if left out", unit="seconds", limits=POSITIVE, example=2592000),
    )
    replace: bool = field(default=False, metadata=describe("revoke the older tokens of this role and node"))


@dataclass(frozen=True)
class LogIn(Record):
    """A token that a browser shows once."""

    token: str = field(
        metadata=describe(
            limits=Limits(shortest=1, longest=LONGEST_TOKEN), example="nw_reader_24phvwWW7ycEEcBpTyE3VWBVbTz5qfWHY"
        )
    )


_PATH = Limits(shortest=1, longest=4096)
_NAME = Limits(shortest=1, longest=128)


@dataclass(frozen=True)
class PoolJobBody(Record):
    """A job for a pool: what it has of its own. Network and batch are the pool's, and may be named to make sure."""

    input: str = field(metadata=describe("folder in HDFS", limits=_PATH, example="/data/images"))
    output: str = field(
        metadata=describe(
            "folder in HDFS for the results, which must not exist yet", limits=_PATH, example="/out/pooled"
        )
    )
    capability: str = field(
        metadata=describe("data name that tells what a node can do", limits=_NAME, example="perf_cpu")
    )
    cold_start: str | None = field(
        default=None,
        metadata=describe(
            "data name that decides where no node has the capability yet; that of free CPU if left out", limits=_NAME
        ),
    )
    policy: str = field(default="algorithm1", metadata=describe("that divides the images", limits=_NAME))
    fallback: str | None = field(
        default=None,
        metadata=describe("policy where the capability cannot be had; refused if left out", limits=_NAME),
    )
    steal: bool = field(default=True, metadata=describe("whether idle nodes take work that others still have"))
    weight: float = field(
        default=1.0,
        metadata=describe(
            "its share of workers that jobs have together, 0.01 to 100", limits=Limits(least=0.01, most=100)
        ),
    )
    engine: str | None = field(default=None, metadata=describe("refused if the pool has another", limits=_NAME))
    model: str | None = field(
        default=None, metadata=describe("as the pool tells it; refused if it has another", limits=_NAME)
    )
    batch: int | None = field(
        default=None,
        metadata=describe(
            "images of one inference; refused if the pool has others", limits=Limits(least=1, most=10**6)
        ),
    )
