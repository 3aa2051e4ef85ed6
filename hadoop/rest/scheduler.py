"""What a ResourceManager tells of its scheduler: of the capacity scheduler the leaf queues, with all their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CAPACITY = "capacity"
"""The kind of the only scheduler whose queues are read."""


@dataclass(frozen=True)
class QueueUser:
    """What a user of YARN has in a queue, in MB, of at most how much, and how much of it masters have."""

    name: str
    used_mb: int
    most_mb: int
    masters_mb: int


@dataclass(frozen=True)
class LeafQueue:
    """A queue that takes applications, by its path, such as root.default.

    `capacity`, `used` and `maximum` are parts of the cluster, 0 to 1; `share_mb`, `used_mb` and `most_mb` the same in
    MB. Application masters of the queue have `masters_mb` of at most `masters_most_mb`, those of one user at most
    `user_masters_most_mb`.
    """

    name: str
    state: str
    capacity: float
    used: float
    maximum: float
    share_mb: int
    used_mb: int
    most_mb: int
    masters_mb: int
    masters_most_mb: int
    user_masters_most_mb: int
    users: tuple[QueueUser, ...]


@dataclass(frozen=True)
class Scheduler:
    """Its kind, such as capacity, fair or fifo, and the leaf queues of a capacity scheduler, by name."""

    kind: str
    queues: tuple[LeafQueue, ...]


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
        used=_part(row["absoluteUsedCapacity"]),
        maximum=_part(row["absoluteMaxCapacity"]),
        share_mb=_mb(row, "minEffectiveCapacity"),
        used_mb=_mb(row, "resourcesUsed"),
        most_mb=_mb(row, "maxEffectiveCapacity"),
        masters_mb=_mb(row, "usedAMResource"),
        masters_most_mb=_mb(row, "AMResourceLimit"),
        user_masters_most_mb=_mb(row, "userAMResourceLimit"),
        users=tuple(_parse_user(one) for one in users),
    )


def _parse_user(row: Mapping[str, Any]) -> QueueUser:
    return QueueUser(
        str(row["username"]), _mb(row, "resourcesUsed"), _mb(row, "userResourceLimit"), _mb(row, "AMResourceUsed")
    )


def _mb(row: Mapping[str, Any], key: str) -> int:
    return int((row.get(key) or {}).get("memory") or 0)


def _part(percent: Any) -> float:
    return round(float(percent) / 100, 6)
