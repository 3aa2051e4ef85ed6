"""Why items do not stay where they are: the reason of every move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from locality.balance import quickest_shares
from locality.types import NO_STARTS, Part, Plan


class Reason(StrEnum):
    """What kept a part from being read where it lies."""

    NO_REPLICA = "no live replica"
    HOLDERS_IDLE = "holders take no work"
    HOLDERS_FULL = "holders are full"
    AVOIDABLE = "avoidable"


@dataclass(frozen=True)
class Move:
    """A part that `node` reads from elsewhere, and why; `text` says it with the numbers of those who hold it."""

    node: str
    part: Part
    reason: Reason
    text: str


def moves(plan: Plan, capability: Mapping[str, float], starts: Mapping[str, float] = NO_STARTS) -> list[Move]:
    """Every part that is not local, by node in reading order.

    A holder is full when it has its share and all of it is its own. One that is below its share, or reads items of
    other nodes, could have read these, so the move is avoidable: for bytes moved, if not for what the policy looks at.
    """
    loads = plan.loads()
    shares = quickest_shares(sum(loads.values()), capability, starts)
    holders = {
        node: _Holder(loads[node], shares[node], sum(part.items for part in parts if not part.is_local(node)))
        for node, parts in plan.parts.items()
        if capability[node]
    }
    return [
        Move(node, part, *_reason(part.block.replicas, holders))
        for node, parts in plan.parts.items()
        for part in parts
        if not part.is_local(node)
    ]


class _Holder(NamedTuple):
    load: int
    share: int
    foreign: int


def _reason(replicas: Sequence[str], holders: Mapping[str, _Holder]) -> tuple[Reason, str]:
    if not replicas:
        return Reason.NO_REPLICA, "no live node holds it"
    working = {name: holders[name] for name in replicas if name in holders}
    if not working:
        return Reason.HOLDERS_IDLE, f"held by {', '.join(replicas)}, where nothing may run"
    could = {name: holder for name, holder in working.items() if holder.foreign or holder.load < holder.share}
    if could:
        said = (
            f"{name} ({h.load} of its share of {h.share}, {h.foreign} of them foreign)" for name, h in could.items()
        )
        return Reason.AVOIDABLE, f"held by {', '.join(said)}"
    said = (f"{name} ({h.load} of its own, its share is {h.share})" for name, h in working.items())
    return Reason.HOLDERS_FULL, f"held by {', '.join(said)}"
