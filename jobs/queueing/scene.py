"""A cluster at one moment, as far as it decides which of the waiting applications begins next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from hadoop.rest.scheduler import Size
from jobs.queueing.run_times import RunTimes


@dataclass(frozen=True)
class Node:
    """A node that takes work: what it has and what of it is free, in MB and vcores, and its label, empty for none."""

    name: str
    total_mb: int
    total_vcores: int
    free_mb: int
    free_vcores: int
    label: str = ""


@dataclass(frozen=True)
class Queue:
    """A leaf queue: its share and its most in MB, and the most for all application masters in it.

    `user_masters_most` is the most for the masters of one user, and `user_most_mb` that for all that a user has. None
    is no limit.
    """

    name: str
    share_mb: float = 1.0
    most_mb: float = inf
    masters_most: Size | None = None
    user_masters_most: Size | None = None
    user_most_mb: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Hold:
    """What an application has on one node."""

    node_name: str
    mb: int
    vcores: int


@dataclass(frozen=True)
class Running:
    """An application that has its master: what it holds, and since how many seconds.

    `runs` is how long such ones run, `at_most` after how many seconds it is ended, None for never.
    """

    queue: str
    user: str
    holds: Sequence[Hold]
    master: Size
    elapsed: float
    runs: RunTimes
    at_most: float | None = None


@dataclass(frozen=True)
class Waiting:
    """An application whose master waits for a place of so many MB and vcores.

    It may have any node of its label, or of these only those in `nodes`. `is_active` says that it counts among the
    masters of its queue already.
    """

    key: str
    queue: str
    user: str
    mb: int
    vcores: int
    runs: RunTimes
    label: str = ""
    nodes: frozenset[str] | None = None
    is_active: bool = False
    at_most: float | None = None

    def may_use(self, node: Node) -> bool:
        """Whether it may have this node, be there room or not."""
        return node.label == self.label and (self.nodes is None or node.name in self.nodes)


@dataclass(frozen=True)
class Scene:
    """All of it; `waiting` stands in the order in which each queue takes them.

    Without `counts_vcores`, memory alone decides, on nodes and of masters.
    """

    nodes: Sequence[Node]
    queues: Sequence[Queue]
    running: Sequence[Running]
    waiting: Sequence[Waiting]
    counts_vcores: bool = True
