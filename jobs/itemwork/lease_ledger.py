"""The leases that one attempt has given: those that run, and what became of the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.application.calls import Refused
from jobs.itemwork.commits import Commit
from jobs.itemwork.messages import Item
from jobs.itemwork.node_totals import NodeTotals, Totals
from jobs.reports.report import LeaseReport
from locality.leases import Answer, Lease

_NAME = re.compile(r"(\d{1,9})-(\d{1,18})")


@dataclass
class RunningLease:
    """A lease that has not ended; `items` are there when it is sent."""

    lease: Lease
    begin: float
    items: tuple[Item, ...] = ()

    @property
    def names(self) -> list[str]:
        """Of the items that its container may have begun."""
        return [item.name for item in self.items]


class LeaseLedger:
    """Not thread-safe; times are seconds since the job's work began, in whichever attempt."""

    def __init__(self, attempt: int) -> None:
        self._attempt = attempt
        self._running: dict[int, RunningLease] = {}
        self._owners: dict[int, tuple[int, str]] = {}
        self.totals = Totals()

    def name(self, token: int) -> str:
        """What workers call a lease."""
        return f"{self._attempt}-{token}"

    def give(self, lease: Lease, now: float) -> RunningLease:
        """A lease begins."""
        given = self._running[lease.token] = RunningLease(lease, now)
        self._owners[lease.token] = lease.lease_id, lease.node
        self.totals.add_take(lease.node, now)
        return given

    def running(self, token: int) -> RunningLease | None:
        """A lease, if it has not ended."""
        return self._running.get(token)

    def of(self, node: str) -> list[RunningLease]:
        """What a node works on, the oldest first."""
        return [given for given in self._running.values() if given.lease.node == node]

    def find(self, node: str, lease: str) -> tuple[int, int] | Answer:
        """Batch and token of a lease that this attempt gave to a node, or why it does not count; Refused if none."""
        match = _NAME.fullmatch(lease)
        if match is None:
            raise Refused(f"{lease!r} is not a lease: write an attempt and a number, such as 1-17")
        attempt, token = map(int, match.groups())
        if attempt < self._attempt:
            return Answer.EXPIRED
        batch, owner = self._owners.get(token, (0, ""))
        return (batch, token) if owner == node and attempt == self._attempt else Answer.UNKNOWN

    def end_batch(self, accepted: Lease, now: float) -> None:
        """The batch of a lease is done: none of its leases runs any more."""
        del self._running[accepted.token]
        for token, given in list(self._running.items()):
            if given.lease.lease_id == accepted.lease_id:
                self.end(token, Answer.SUPERSEDED.value, now)

    def add_commit(self, commit: Commit) -> None:
        """The rows of a lease will not be lost."""
        self.totals.add_commit(commit)

    def end(self, token: int, outcome: str, until: float) -> None:
        """A lease ended without counting; its node worked on it until then at most."""
        given = self._running.pop(token)
        lease, end = given.lease, max(given.begin, until)
        local = sum(part.items for part in lease.parts if part.is_local(lease.node))
        self.totals.add_lease(LeaseReport(lease.node, given.begin, end, lease.items, local, outcome, lease.origin))

    def items_running(self) -> dict[str, int]:
        """Items leased to each node that has any."""
        items: dict[str, int] = {}
        for given in self._running.values():
            items[given.lease.node] = items.get(given.lease.node, 0) + given.lease.items
        return items

    def totals_at(self, now: float) -> dict[str, NodeTotals]:
        """What each node did that ever had a lease, until now."""
        spans: dict[str, list[tuple[float, float]]] = {}
        for given in self._running.values():
            spans.setdefault(given.lease.node, []).append((given.begin, now))
        return {node: self.totals.of(node, spans.get(node, ())) for node in self.totals.nodes()}


def check_names(names: Sequence[str], given: RunningLease) -> tuple[str, ...]:
    """The names of a group; Refused if they are not of its lease, or none."""
    unknown = set(names) - set(given.names)
    if unknown or not names:
        raise Refused(f"the group has to be of items of its lease: {min(unknown, default='it is empty')}")
    return tuple(names)
