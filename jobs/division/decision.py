"""The decision record: what one plan was made from, how, and what it came to; enough to make it again offline."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from infosvc.wire.fields import answer_of, describe
from jobs.division.columns import BlockColumns, Shares, plan_of, shares_of
from jobs.division.starts import in_plan_time
from jobs.errors import JobError
from jobs.reports.texts import FORMER_UNIT
from locality.balance import check_capability, whole_targets
from locality.cost import AccessCost
from locality.quality import Quality
from locality.types import Block, Plan, Terms

FORMAT = "nodewise decision"
VERSION = 1
"""Grows when an older nodewise could misread the file; what may be ignored is added without."""


@dataclass(frozen=True)
class Reading:
    """One value of one node when the plan was made."""

    value: float = field(metadata=describe("what the node was judged by", example=0.5))
    age_seconds: float = field(metadata=describe("old when it was read", unit="seconds", example=1.5))
    state: str = field(metadata=describe(example="fresh"))
    confidence: float | None = field(
        default=None, metadata=describe("how far to trust it, 0 to 1; null where nothing tells", example=0.8)
    )


@dataclass(frozen=True)
class CapabilityReadings:
    """A data name that nodes can be judged by: its unit, what produces it, and its reading on each node."""

    unit: str
    kind: str
    produced_by: str
    help: str
    nodes: Mapping[str, Reading]

    def numbers(self) -> dict[str, float]:
        """The values alone, by node."""
        return {node: reading.value for node, reading in self.nodes.items()}


@dataclass(frozen=True)
class Share:
    """What a plan gives a node, in items and bytes, and what Algorithm 1's formula gives it (`target_items`).

    In JSON items are called `images`, whatever they are: others read them by this name.
    """

    node_name: str = field(metadata=describe(example="127.0.1.11"))
    items: int = field(metadata=describe("items that the plan gives it", name="images", example=20))
    size_bytes: int = field(metadata=describe("of these items", unit="bytes", example=20000))
    local_items: int = field(metadata=describe("items of these that it holds", name="local_images", example=20))
    local_bytes: int = field(metadata=describe("of the items that it holds", unit="bytes", example=20000))
    target_items: int = field(
        metadata=describe("items that Algorithm 1's formula gives it", name="target_images", example=20)
    )


@dataclass(frozen=True)
class Decision:
    """One plan with everything that it was made from.

    `capability` is the name among `capabilities` that decided; the others were fresh then, so that they can be tried.
    `speeds` are items per second of earlier jobs, as far as any were known; `made_at` is ISO 8601. `unit` is what the
    kind of job calls an item, in the plural. `start_seconds` are those after which nodes could begin that could not at
    once.
    """

    job_id: str
    made_at: str
    input: str
    engine: str
    batch: int
    policy: str
    capability: str
    capabilities: Mapping[str, CapabilityReadings]
    speeds: Mapping[str, float]
    terms: Terms
    blocks: Sequence[Block]
    plan: Plan
    quality: Quality
    planning_seconds: float
    unit: str = FORMER_UNIT
    start_seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def readings(self) -> CapabilityReadings:
        """The capability that decided."""
        return self.capabilities[self.capability]

    @property
    def items(self) -> int:
        """Items in all."""
        return sum(block.items for block in self.blocks)

    def terms_by(self, values: Mapping[str, float]) -> Terms:
        """The terms of a plan by these values of a capability, in whose unit it counts when nodes begin."""
        return replace(self.terms, starts=in_plan_time(self.start_seconds, self.speeds, values))

    def shares(self) -> list[Share]:
        """What each node got, by name."""
        targets = whole_targets(self.items, self.readings.numbers(), self.terms.starts)
        return [_share(node, self.plan, targets[node]) for node in sorted(self.plan.parts)]

    def to_bytes(self) -> bytes:
        """The content of a decision.json."""
        cost = self.terms.cost
        stored = _Stored(
            **{name: getattr(self, name) for name in _SAME},
            epsilon=self.terms.epsilon,
            cost=None if cost == AccessCost() else json.loads(cost.to_json(sys.maxsize)),
            blocks=BlockColumns.of(self.blocks),
            plan=shares_of(self.plan, self.blocks),
            quality=self.quality,
            shares=[answer_of(share) for share in self.shares()],
            unit=msgspec.UNSET if self.unit == FORMER_UNIT else self.unit,
        )
        return msgspec.json.encode(stored)

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> Decision:
        """Inverse of `to_bytes`; JobError says in a sentence what is wrong with the file that lies at `where`."""
        _check_format(content, where)
        try:
            return _restore(msgspec.json.decode(content, type=_Stored))
        except (msgspec.ValidationError, JobError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise JobError(
                f"{where} is a damaged decision record ({error})", remedy="fetch it again from the job's output"
            ) from None


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """The file as it is; `shares` is for those who read it without us. It names the unit where it is not images."""

    format: str = FORMAT
    version: int = VERSION
    job_id: str
    made_at: str
    input: str
    engine: str
    batch: int
    policy: str
    capability: str
    epsilon: float
    planning_seconds: float
    quality: Quality
    shares: list[dict[str, Any]] = field(default_factory=list)
    speeds: dict[str, float]
    capabilities: dict[str, CapabilityReadings]
    cost: dict[str, Any] | None
    plan: Shares
    blocks: BlockColumns
    unit: str | msgspec.UnsetType = msgspec.UNSET
    start_seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Head:
    format: str = ""
    version: int = 0


_SAME = (
    *("job_id", "made_at", "input", "engine", "batch", "policy", "capability", "capabilities", "speeds"),
    *("planning_seconds", "start_seconds"),
)


def _check_format(content: bytes, where: str) -> None:
    try:
        head = msgspec.json.decode(content, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JobError(
            f"{where} is not a decision record ({error})",
            remedy="give the decision.json that a job wrote beside its report",
        ) from None
    if head.format != FORMAT:
        raise JobError(
            f"{where} is not a decision record", remedy="give the decision.json that a job wrote beside its report"
        )
    if head.version > VERSION:
        raise JobError(
            (f"{where} was written by a newer nodewise (format {head.version}, this one reads up to {VERSION})"),
            remedy="update this one",
        )


def _restore(stored: _Stored) -> Decision:
    blocks = stored.blocks.blocks()
    plan = plan_of(stored.plan, blocks)
    if not all(math.isfinite(speed) and speed >= 0 for speed in stored.speeds.values()):
        raise JobError("one of its speeds is not a finite number of 0 or more")
    if set(stored.capabilities[stored.capability].nodes) != set(plan.parts):
        raise JobError(f"its values of {stored.capability} are not those of the nodes in its plan")
    if not all(math.isfinite(seconds) and seconds >= 0 for seconds in stored.start_seconds.values()):
        raise JobError("one of its starts is not a finite number of 0 or more")
    values = stored.capabilities[stored.capability].numbers()
    check_capability(values)
    cost = AccessCost.from_json(json.dumps(stored.cost)) if stored.cost else AccessCost()
    return Decision(
        **{name: getattr(stored, name) for name in _SAME},
        terms=Terms(cost, stored.epsilon, in_plan_time(stored.start_seconds, stored.speeds, values)),
        blocks=blocks,
        plan=plan,
        quality=stored.quality,
        unit=FORMER_UNIT if stored.unit is msgspec.UNSET else stored.unit,
    )


def _share(node: str, plan: Plan, target: int) -> Share:
    parts = plan.parts[node]
    local = [part for part in parts if node in part.block.replicas]
    return Share(
        node_name=node,
        items=sum(part.items for part in parts),
        size_bytes=round(math.fsum(part.size_bytes for part in parts)),
        local_items=sum(part.items for part in local),
        local_bytes=round(math.fsum(part.size_bytes for part in local)),
        target_items=target,
    )
