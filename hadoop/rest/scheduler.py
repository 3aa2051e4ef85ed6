"""What a ResourceManager tells of its scheduler: of the capacity scheduler the leaf queues, with all their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hadoop.rest.amounts import VCORES, Amounts, parse_amounts

CAPACITY = "capacity"
"""The kind of the only scheduler whose queues are read."""


@dataclass(frozen=True)
class QueueUser:
    """What a user of YARN has in a queue, of at most how much, and how much of it masters have."""

    name: str
    used: Amounts
    most: Amounts
    masters: Amounts


@dataclass(frozen=True)
class LeafQueue:
    """A queue that takes applications, by its path, such as root.default.

    `capacity`, `used_part` and `maximum` are parts of the cluster, 0 to 1; `share`, `used` and `most` the same by type
    of resource. Application masters of the queue have `masters` of at most `masters_most`, those of one user at most
    `user_masters_most`. Amounts and limits are of nodes without a label.
    """

    name: str
    state: str
    capacity: float
    used_part: float
    maximum: float
    share: Amounts
    used: Amounts
    most: Amounts
    masters: Amounts
    masters_most: Amounts
    user_masters_most: Amounts
    users: tuple[QueueUser, ...]


@dataclass(frozen=True)
class Scheduler:
    """Its kind, such as capacity, fair or fifo, and the leaf queues of a capacity scheduler, by name."""

    kind: str
    queues: tuple[LeafQueue, ...]

    @property
    def counts_all(self) -> bool:
        """Whether its limits hold for all types: its DefaultResourceCalculator tells 1 vcore, and goes by memory."""
        limits = (most for one in self.queues for most in (one.masters_most, one.user_masters_most))
        return any(most.get(VCORES, 0) > 1 for most in limits)


def parse_scheduler(answer: Mapping[str, Any]) -> Scheduler:
    """Read /cluster/scheduler; KeyError, TypeError, ValueError or AttributeError when it is something else.

    >>> parse_scheduler({"scheduler": {"schedulerInfo": {"type": "fifoScheduler", "qName": "default"}}})
    Scheduler(kind='fifo', queues=())
    """
    info = answer["scheduler"]["schedulerInfo"]
    kind = str(info["type"]).removesuffix("Scheduler")
    queues = _leaves(info) if kind == CAPACITY else ()
    return Scheduler(kind, tuple(sorted((_parse_leaf(one) for one in queues), key=lambda one: one.name)))


def _leaves(queue: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The queues below one that have none below them."""
    for below in (queue.get("queues") or {}).get("queue") or ():
        if "numActiveApplications" in below:
            yield below
        else:
            yield from _leaves(below)


def _parse_leaf(row: Mapping[str, Any]) -> LeafQueue:
    users = (row.get("users") or {}).get("user") or ()
    return LeafQueue(
        name=str(row.get("queuePath") or row["queueName"]),
        state=str(row["state"]),
        capacity=_part(row["absoluteCapacity"]),
        used_part=_part(row["absoluteUsedCapacity"]),
        maximum=_part(row["absoluteMaxCapacity"]),
        share=parse_amounts(row.get("minEffectiveCapacity")),
        used=parse_amounts(row.get("resourcesUsed")),
        most=parse_amounts(row.get("maxEffectiveCapacity")),
        masters=parse_amounts(row.get("usedAMResource")),
        masters_most=parse_amounts(row.get("AMResourceLimit")),
        user_masters_most=parse_amounts(row.get("userAMResourceLimit")),
        users=tuple(_parse_user(one) for one in users),
    )


def _parse_user(row: Mapping[str, Any]) -> QueueUser:
    return QueueUser(
        name=str(row["username"]),
        used=parse_amounts(row.get("resourcesUsed")),
        most=parse_amounts(row.get("userResourceLimit")),
        masters=parse_amounts(row.get("AMResourceUsed")),
    )


def _part(percent: Any) -> float:
    return round(float(percent) / 100, 6)
