"""A cluster at one moment, as far as it decides which of the waiting applications begins next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hadoop.rest.amounts import MEMORY, Amounts
from jobs.queueing.run_times import RunTimes


@dataclass(frozen=True)
class Node:
    """A node that takes work: what it has and what of it is free, and its label, empty for none."""

    name: str
    total: Amounts
    free: Amounts
    label: str = ""


@dataclass(frozen=True)
class Queue:
    """A leaf queue: its share and its most, and the most for all application masters in it.

    `user_masters_most` is the most for the masters of one user, and `user_most` that for all that a user has. Of a type
    that a limit does not name, there may be any number. Limits hold on nodes without a label: YARN tells no others.
    """

    name: str
    share: Amounts = field(default_factory=lambda: {MEMORY: 1})
    most: Amounts = field(default_factory=dict)
    masters_most: Amounts = field(default_factory=dict)
    user_masters_most: Amounts = field(default_factory=dict)
    user_most: Mapping[str, Amounts] = field(default_factory=dict)


@dataclass(frozen=True)
class Hold:
    """What an application has on one node."""

    node_name: str
    amounts: Amounts


@dataclass(frozen=True)
class Running:
    """An application that has its master: what it holds, and since how many seconds.

    `runs` is how long such ones run, `at_most` after how many seconds it is ended, None for never. `label` is that of
    the node of its master.
    """

    queue: str
    user: str
    holds: Sequence[Hold]
    master: Amounts
    elapsed: float
    runs: RunTimes
    at_most: float | None = None
    label: str = ""


@dataclass(frozen=True)
class Waiting:
    """An application whose master waits for a place of the size that it `asks` for.

    It may have any node of its label, or of these only those in `nodes`. `is_active` says that it counts among the
    masters of its queue already.
    """

    key: str
    queue: str
    user: str
    asks: Amounts
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

    Without `counts_all`, memory alone decides, on nodes and of limits.
    """

    nodes: Sequence[Node]
    queues: Sequence[Queue]
    running: Sequence[Running]
    waiting: Sequence[Waiting]
    counts_all: bool = True
