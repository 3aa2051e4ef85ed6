"""What every node has done, added up as leases end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from jobs.itemwork.commits import Commit
from jobs.reports.report import LeaseReport
from locality.leases import Answer

Span = tuple[float, float]


@dataclass(frozen=True)
class NodeTotals:
    """One node: what it committed, and its `busy_seconds`, in which it had at least one lease, whatever became of it.

    Times are seconds since the job's work began, None before there are any.
    """

    items: int = 0
    errors: int = 0
    local_items: int = 0
    bytes_read: int = 0
    moved_bytes: int = 0
    busy_seconds: float = 0.0
    first_take: float | None = None
    last_commit: float | None = None

    @property
    def seconds(self) -> float:
        """From its first take to its last commit; 0 if it committed nothing."""
        if self.first_take is None or self.last_commit is None:
            return 0.0
        return self.last_commit - self.first_take

    @property
    def items_per_second(self) -> float:
        """While it was busy; 0 if it never was."""
        return self.items / self.busy_seconds if self.busy_seconds else 0.0


NOTHING = NodeTotals()
"""Of a node that never had a lease."""


@dataclass
class _Node:
    items: int = 0
    errors: int = 0
    local_items: int = 0
    bytes_read: int = 0
    moved_bytes: int = 0
    first_take: float | None = None
    last_commit: float | None = None
    spans: list[Span] = field(default_factory=list)


class Totals:
    """Leases that have ended, of this and of earlier attempts; not thread-safe."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._timeline: list[LeaseReport] = []
        self.first_commit: float | None = None

    def add_take(self, node_name: str, now: float) -> None:
        """A node got a lease."""
        node = self._nodes.setdefault(node_name, _Node())
        node.first_take = now if node.first_take is None else min(node.first_take, now)

    def add_lease(self, lease: LeaseReport) -> None:
        """A lease that counts no more, or that was committed."""
        self._timeline.append(lease)
        node = self._nodes.setdefault(lease.node_name, _Node())
        node.spans = _merge([*node.spans, (lease.begin, lease.end)])

    def add_commit(self, commit: Commit) -> None:
        """A lease whose rows count."""
        self.add_take(commit.node_name, commit.begin)
        node = self._nodes[commit.node_name]
        node.items += commit.items
        node.errors += commit.errors
        node.local_items += commit.local_items
        node.bytes_read += commit.bytes_read
        node.moved_bytes += commit.moved_bytes
        node.last_commit = max(commit.end, node.last_commit or 0.0)
        self.first_commit = commit.end if self.first_commit is None else min(commit.end, self.first_commit)
        self.add_lease(
            LeaseReport(
                node_name=commit.node_name,
                begin=commit.begin,
                end=commit.end,
                items=commit.items,
                local_items=commit.local_items,
                outcome=Answer.ACCEPTED.value,
                origin=commit.origin,
            )
        )

    def of(self, node_name: str, running: Iterable[Span]) -> NodeTotals:
        """One node's, with the time of leases that have not ended."""
        node = self._nodes.get(node_name, _Node())
        return NodeTotals(
            items=node.items,
            errors=node.errors,
            local_items=node.local_items,
            bytes_read=node.bytes_read,
            moved_bytes=node.moved_bytes,
            busy_seconds=sum(end - begin for begin, end in _merge([*node.spans, *running])),
            first_take=node.first_take,
            last_commit=node.last_commit,
        )

    def nodes(self) -> list[str]:
        """Those that ever had a lease."""
        return list(self._nodes)

    def timeline(self) -> list[LeaseReport]:
        """Every lease that ended, by its begin."""
        return sorted(self._timeline, key=lambda lease: (lease.begin, lease.node_name, lease.end))


def _merge(spans: list[Span]) -> list[Span]:
    """The same time in spans that do not touch, in order."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
