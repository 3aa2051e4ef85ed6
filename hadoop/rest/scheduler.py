"""What a ResourceManager tells of its scheduler: of the capacity scheduler the leaf queues, with all their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CAPACITY = "capacity"
"""The kind of the only scheduler whose queues are read."""


@dataclass(frozen=True)
class Size:
    """So many MB and vcores."""

    mb: int
    vcores: int

    def plus(self, other: Size) -> Size:
        """Both together."""
        return Size(self.mb + other.mb, self.vcores + other.vcores)

    def minus(self, other: Size) -> Size:
        """Without what the other has."""
        return Size(self.mb - other.mb, self.vcores - other.vcores)


@dataclass(frozen=True)
class QueueUser:
    """What a user of YARN has in a queue, in MB, of at most how much, and how much of it masters have."""

    name: str
    used_mb: int
    most_mb: int
    masters: Size


@dataclass(frozen=True)
class LeafQueue:
    """A queue that takes applications, by its path, such as root.default.

    `capacity`, `used` and `maximum` are parts of the cluster, 0 to 1; `share_mb`, `used_mb` and `most_mb` the same in
    MB. Application masters of the queue have `masters` of at most `masters_most`, those of one user at most
    `user_masters_most`.
    """

    name: str
    state: str
    capacity: float
    used: float
    maximum: float
    share_mb: int
    used_mb: int
    most_mb: int
    masters: Size
    masters_most: Size
    user_masters_most: Size
    users: tuple[QueueUser, ...]


@dataclass(frozen=True)
class Scheduler:
    """Its kind, such as capacity, fair or fifo, and the leaf queues of a capacity scheduler, by name."""

    kind: str
    queues: tuple[LeafQueue, ...]

    @property
    def counts_vcores(self) -> bool:
        """Whether its limits hold for vcores: its DefaultResourceCalculator tells 1 for each, and goes by memory."""
        return any(max(one.masters_most.vcores, one.user_masters_most.vcores) > 1 for one in self.queues)


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
        share_mb=_size(row, "minEffectiveCapacity").mb,
        used_mb=_size(row, "resourcesUsed").mb,
        most_mb=_size(row, "maxEffectiveCapacity").mb,
        masters=_size(row, "usedAMResource"),
        masters_most=_size(row, "AMResourceLimit"),
        user_masters_most=_size(row, "userAMResourceLimit"),
        users=tuple(_parse_user(one) for one in users),
    )


def _parse_user(row: Mapping[str, Any]) -> QueueUser:
    return QueueUser(
        name=str(row["username"]),
        used_mb=_size(row, "resourcesUsed").mb,
        most_mb=_size(row, "userResourceLimit").mb,
        masters=_size(row, "AMResourceUsed"),
    )


def _size(row: Mapping[str, Any], key: str) -> Size:
    told = row.get(key) or {}
    return Size(int(told.get("memory") or 0), int(told.get("vCores") or 0))


def _part(percent: Any) -> float:
    return round(float(percent) / 100, 6)
