"""What the explanation of a decision says: the body of `nodewise job explain --json`, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infosvc.wire.fields import describe
from jobs.division.decision import Reading, Share

_ITEMS = describe("items", name="images", example=3)
_BYTES = describe("of these items", unit="bytes", example=3000)


@dataclass(frozen=True)
class PlanQuality:
    """How good a plan is, as locality.quality measures it: seconds hold when the capability is in items per second."""

    makespan_seconds: float = field(metadata=describe("of the node that works longest", unit="seconds", example=40.0))
    lower_bound_seconds: float = field(metadata=describe("of a perfect division", unit="seconds", example=40.0))
    makespan_over_bound: float = field(metadata=describe("makespan over lower bound, 1 is perfect", example=1.0))
    bytes_moved: int = field(metadata=describe("read by nodes that do not hold them", unit="bytes", example=0))
    bytes_moved_optimal: int = field(
        metadata=describe(
            "that any plan moves at least that ends within 1 + epsilon of the bound", unit="bytes", example=0
        )
    )
    bytes_moved_over_optimal: float | None = field(
        metadata=describe("bytes moved over the fewest; null where the fewest are 0 and some are moved", example=1.0)
    )
    locality_ratio: float = field(metadata=describe("share of the items that stay where they are", example=1.0))
    loads: Mapping[str, int] = field(metadata=describe("items by node", example={"127.0.1.11": 20}))
    access_seconds: float = field(
        metadata=describe("that all nodes together spend on reading", unit="seconds", example=0.01)
    )


@dataclass(frozen=True)
class Fetched:
    """Items that a node reads from others for one reason."""

    why: str = field(metadata=describe("the reason, with its numbers", example="that no live node holds"))
    items: int = field(metadata=_ITEMS)
    size_bytes: int = field(metadata=_BYTES)


@dataclass(frozen=True)
class GivenAway:
    """Items that a node holds, and another one reads that does not."""

    to: str = field(metadata=describe("who reads them", example="127.0.1.12"))
    items: int = field(metadata=_ITEMS)
    size_bytes: int = field(metadata=_BYTES)


@dataclass(frozen=True, kw_only=True)
class ExplainedNode(Reading, Share):
    """One node's share, what it was made from, and why it is so."""

    most_items: int = field(
        metadata=describe(
            "most items with which it ends within 1 + epsilon of the bound", name="most_images", example=20
        )
    )
    held_items: int = field(metadata=describe("items that it holds", name="held_images", example=20))
    fetched: tuple[Fetched, ...] = field(metadata=describe("most items first"))
    given_away: tuple[GivenAway, ...] = field(metadata=describe("most items first"))
    start_seconds: float = field(metadata=describe("until it could begin", unit="seconds", example=0.0))
    predicted: float | None = field(
        metadata=describe("its makespan, in `makespan_unit`; null where none can be told", example=40.0)
    )
    why: tuple[str, ...] = field(metadata=describe("the same in sentences", example=["It gets these 20."]))


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One decision, and why each node got its share; `item_unit` is what an item is called, in the plural."""

    job_id: str = field(metadata=describe(example="application_1700000000000_0001"))
    made_at: str = field(metadata=describe("ISO 8601 with its zone", example="2026-01-02T03:04:05+00:00"))
    input: str = field(metadata=describe("what was divided", example="/data/images"))
    policy: str = field(metadata=describe("what divided it", example="maxflow"))
    epsilon: float = field(metadata=describe("by how much a plan may end after the bound, as a ratio", example=0.02))
    capability: str = field(metadata=describe("data name by which nodes were judged", example="perf_cpu"))
    unit: str = field(metadata=describe("unit of the capability", example="images/second"))
    kind: str = field(metadata=describe("what brings the capability", example="processor"))
    produced_by: str = field(metadata=describe("the command that brings it", example="processors/judge.py"))
    help: str = field(metadata=describe("what the capability says", example="What a node does"))
    items: int = field(metadata=describe("items in all", name="images", example=40))
    blocks: int = field(metadata=describe("blocks in all", example=40))
    block_digest: str = field(metadata=describe("names the blocks, to compare decisions by", example="0f" * 32))
    quality: PlanQuality
    makespan_unit: str = field(
        metadata=describe("seconds, or pictures / NAME where not all speeds are known", example="seconds")
    )
    makespan_meaning: str = field(
        metadata=describe("the unit in words", example="seconds, at the speeds the nodes had in earlier jobs")
    )
    makespan: float = field(metadata=describe("predicted, in `makespan_unit`", example=40.0))
    lower_bound: float = field(metadata=describe("of a perfect division, in `makespan_unit`", example=40.0))
    makespan_over_bound: float | None = field(metadata=describe("1 is perfect", example=1.0))
    nodes: tuple[ExplainedNode, ...]
    item_unit: str = field(metadata=describe(answered=False))
