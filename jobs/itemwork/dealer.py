"""Gives leases to containers and takes their rows, for many threads at once; rows and deaths are recorded first."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import pyarrow as pa

from hadoop.errors import HadoopError
from jobs.application.calls import Gone
from jobs.application.journal import Record
from jobs.errors import JobError
from jobs.itemwork.blame import Blame
from jobs.itemwork.commits import Commit, commits, errors_in, local_and_moved, remaining
from jobs.itemwork.lease_ledger import LeaseLedger, RunningLease, check_names
from jobs.itemwork.messages import Group, Item, Task
from jobs.itemwork.node_totals import NodeTotals
from jobs.reports.report import LeaseReport
from locality.leases import SOON_SECONDS, Answer, Lease, Leases
from locality.types import Part, PlanError

__all__ = ["Dealer", "Gone", "NodeTotals", "remaining"]

STORING_SECONDS = 0.1
"""When to ask again while the last rows are being recorded."""


class Log(Protocol):
    """Where what has to survive is recorded."""

    def append(self, record: Record) -> None:
        """Durable on return; HadoopError if it cannot be."""


class Dealer:
    """One attempt's leases. Gone when a container asks that is not wanted, HadoopError when nothing can be recorded.

    `clock` tells seconds since the job's work began, in whichever attempt; it is the one that `leases` were made with.
    Until the first lease is taken, no time passes for them: nodes whose containers are being started are not silent.
    """

    def __init__(
        self,
        leases: Leases,
        items_of: Callable[[Part], Sequence[Item]],
        find_flaw: Callable[[pa.Schema], str],
        journal: Log,
        attempt: int,
        clock: Callable[[], float],
    ) -> None:
        self._leases = leases
        self._items_of = items_of
        self._find_flaw = find_flaw
        self._journal = journal
        self._clock = clock
        self._now = self._made = clock()
        self._begun: float | None = None
        self._lock = threading.Lock()
        self._looking_up = threading.Lock()
        self._blame = Blame()
        self._heard: dict[str, float] = {}
        self._ledger = LeaseLedger(attempt)
        self._storing = 0
        self._broken: HadoopError | None = None

    def restore(self, records: Iterable[Record]) -> None:
        """Know what earlier attempts knew, before anything is given; records of other kinds are passed over."""
        for record in records:
            self._blame.restore([record])
            for commit in commits([record]):
                self._ledger.add_commit(commit)

    def take(self, node: str, container: str, holding: Sequence[str]) -> Task | float | None:
        """A lease, or the seconds to wait, or None when all is done; again what an answer that was lost had given."""
        with self._lock:
            self._hear(node, container)
            given = self._find_not_held(node, holding) or self._give(node)
        return self._task(given) if isinstance(given, RunningLease) else given

    def commit(self, node: str, container: str, lease: str, rows: bytes, seconds: float, bytes_read: int) -> Answer:
        """Count the rows of a lease, an Arrow stream, unless it ended; Refused when they are not its rows."""
        with self._lock:
            self._hear(node, container)
            given = self._running(node, lease)
            if isinstance(given, Answer):
                return given
            items = given.items
        errors = errors_in(rows, items, self._find_flaw)
        with self._lock:
            now = self._hear(node, container)
            answer = self._leases.commit(given.lease.lease_id, given.lease.token, self._for_leases())
            if answer is not Answer.ACCEPTED:
                return answer
            self._storing += given.lease.items
            self._ledger.end_batch(given.lease, now)
            self._blame.clear(node, given.names)
            commit = self._commit(container, given, rows, errors, (seconds, bytes_read))
        self._record(commit.to_record())
        with self._lock:
            self._storing -= commit.items
            self._ledger.add_commit(commit)
        return answer

    def heartbeat(self, node: str, container: str) -> list[str]:
        """The leases of this container that still count."""
        with self._lock:
            self._hear(node, container)
            return [self._ledger.name(token) for token in sorted(self._leases.heartbeat(node, self._for_leases()))]

    def note_begin(self, node: str, container: str, lease: str, names: Sequence[str]) -> None:
        """It begins with a group that may end it, or is done with the one before, if there are no names."""
        with self._lock:
            self._hear(node, container)
            given = self._running(node, lease)
            if isinstance(given, RunningLease):
                self._blame.announce(node, check_names(names, given) if names else ())

    def note_death(
        self, node: str, container: str, lease: str, names: Sequence[str], reason: str
    ) -> tuple[tuple[Group, ...], dict[str, str]]:
        """A process of it ended while it did these: how to go on with them, and who is convicted of them."""
        with self._lock:
            self._hear(node, container)
            given = self._running(node, lease)
            if isinstance(given, Answer):
                return (), {}
            death = self._blame.note_process_death(node, check_names(names, given), reason)
            groups = self._blame.split([item for item in given.items if item.name in set(names)])
            convicted = self._blame.convictions(names)
        if death:
            self._record(death.to_record())
        return groups, convicted

    def add_container(self, node: str, container: str, capability: float) -> None:
        """A container was started on a node: it is its current one, and may take."""
        with self._lock:
            self._expire()
            if self._blame.container(node) not in (None, container):
                self._lose(node, "another container took its place")
            self._blame.set_container(node, container)
            try:
                self._leases.heartbeat(node, self._for_leases())
            except PlanError:
                self._leases.join(node, capability, self._for_leases())

    def note_starting(self, node: str) -> None:
        """A node's container is on its way, or has not said anything yet: what waits for the node stays its own."""
        with self._lock:
            self._expire()
            try:
                self._leases.heartbeat(node, self._for_leases(), starting=True)
            except PlanError:
                return  # it was lost, and has nothing to keep

    def is_suspect(self, node: str, container: str) -> bool:
        """Whether what it works on now is suspected of ending containers."""
        with self._lock:
            return self._blame.has_announced(node, container)

    def end_container(self, node: str, container: str, blame: bool, reason: str) -> dict[str, str]:
        """A container is gone, and with `blame` what it did may be why; the items convicted by that.

        What it held is given back, and so is the queue of a node that has none. Nothing happens when the node has
        another one by now.
        """
        with self._lock:
            self._expire()
            current = self._blame.container(node)
            if current not in (None, container):
                return {}
            held = [given.names for given in self._ledger.of(node)]
            deaths = self._blame.note_container_death(node, held, reason) if blame and current else []
            self._lose(node, reason)
        for death in deaths:
            self._record(death.to_record())
        return {name: why for death in deaths for name, why in death.convicted.items()}

    def pop_excused(self) -> list[str]:
        """The containers whose end turned out to be the fault of an item, and not of their nodes; each is told once."""
        with self._lock:
            return self._blame.pop_excused()

    def expire(self) -> None:
        """Take back what silent nodes hold; HadoopError if anything could not be recorded."""
        with self._lock:
            self._expire()
            if self._broken:
                raise self._broken

    @property
    def left(self) -> int:
        """Items that have no recorded row; at 0 the work is done."""
        with self._lock:
            return self._leases.left + self._storing

    @property
    def first_result_seconds(self) -> float:
        """When the first rows were committed, in whichever attempt; 0 before any."""
        with self._lock:
            return self._ledger.totals.first_commit or 0.0

    def last_heard(self, node: str) -> float:
        """The second at which a container of the node said anything, -inf before it did."""
        with self._lock:
            return self._heard.get(node, -math.inf)

    def running(self) -> dict[str, int]:
        """Items leased now to each node that has any."""
        with self._lock:
            return self._ledger.items_running()

    def totals(self) -> dict[str, NodeTotals]:
        """What each node did that ever had a lease."""
        with self._lock:
            return self._ledger.totals_at(self._tick())

    def timeline(self) -> list[LeaseReport]:
        """Every lease that ended; of earlier attempts, every one that counted."""
        with self._lock:
            return self._ledger.totals.timeline()

    def _tick(self) -> float:
        self._now = max(self._now, self._clock())
        return self._now

    def _for_leases(self) -> float:
        """The second as the leases count it."""
        if self._begun is None:
            return self._made
        return self._made + self._now - self._begun

    def _hear(self, node: str, container: str) -> float:
        if self._broken:
            raise self._broken
        now = self._expire()
        if self._blame.container(node) != container:
            raise Gone(f"container {container} is not the one that works for {node}: it has to end")
        self._heard[node] = now
        return now

    def _expire(self) -> float:
        now = self._tick()
        for lease in self._leases.expire(self._for_leases()):
            self._ledger.end(lease.token, Answer.EXPIRED.value, self._heard.get(lease.node, now))
        return now

    def _find_not_held(self, node: str, holding: Sequence[str]) -> RunningLease | None:
        for given in self._ledger.of(node):
            if self._ledger.name(given.lease.token) not in holding:
                self._leases.heartbeat(node, self._for_leases())
                return given
        return None

    def _give(self, node: str) -> RunningLease | float | None:
        now = self._now
        if self._begun is None:
            self._begun = now
        offer = self._leases.take(node, self._for_leases())
        if offer is None:
            return STORING_SECONDS if self._storing else None
        if not isinstance(offer, Lease):
            return max(SOON_SECONDS, offer.until - self._for_leases())
        return self._ledger.give(offer, now)

    def _task(self, given: RunningLease) -> Task | float:
        """The lease with its items, which may have to be read first: other takes wait for that, and nothing else."""
        token = given.lease.token
        with self._looking_up:
            items = given.items or tuple(one for part in given.lease.parts for one in self._look_up(part))
        with self._lock:
            if self._ledger.running(token) is None:
                return SOON_SECONDS
            given.items = items
            return Task(self._ledger.name(token), self._blame.split(items), self._blame.convictions(given.names))

    def _look_up(self, part: Part) -> Sequence[Item]:
        items = self._items_of(part)
        if len(items) != part.items:
            raise JobError(
                f"{part.block.name} has {len(items)} items where {part.items} were planned",
                remedy="the input was changed during the job; run it again",
            )
        return items

    def _running(self, node: str, lease: str) -> RunningLease | Answer:
        """The lease of this node, or why it does not count."""
        found = self._ledger.find(node, lease)
        if isinstance(found, Answer):
            return found
        batch, token = found
        return self._ledger.running(token) or self._leases.commit(batch, token, self._for_leases())

    def _commit(
        self, container: str, given: RunningLease, rows: bytes, errors: int, worked: tuple[float, int]
    ) -> Commit:
        lease = given.lease
        local_items, moved_bytes = local_and_moved(lease.node, lease.parts, given.items)
        return Commit(
            node_name=lease.node,
            container_id=container,
            lease=self._ledger.name(lease.token),
            origin=lease.origin,
            parts=[(part.block.name, part.first, part.items) for part in lease.parts],
            begin=given.begin,
            end=self._now,
            items=lease.items,
            errors=errors,
            local_items=local_items,
            bytes_read=worked[1],
            moved_bytes=moved_bytes,
            compute_seconds=worked[0],
            rows=rows,
        )

    def _lose(self, node: str, reason: str) -> None:
        """Give back what a node has, and know its container no more."""
        until = self._heard.get(node, self._now)
        for lease in self._leases.lost(node, self._for_leases()):
            self._ledger.end(lease.token, reason, until)
        self._blame.forget_container(node)

    def _record(self, record: Record) -> None:
        try:
            self._journal.append(record)
        except HadoopError as error:
            self._broken = error
            raise
