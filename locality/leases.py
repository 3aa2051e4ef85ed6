"""Leases: a plan starts the work, leases finish it, although speeds were guessed wrongly and nodes slow down or die.

Every node has a queue, filled by the plan, what its own disks hold first, and asks for one batch after the other. One
whose queue is empty steals from the node that would finish last at the speeds seen so far, and owns and starts what it
stole at once, so nothing is stolen back and forth. Batches shrink with what is left, and when nothing waits any more,
the batch that is thought to end last is given to an idle node too: who commits first wins.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from locality.cost import AccessCost
from locality.latest_first import LatestFirst
from locality.part_queue import PartQueue
from locality.rules import Rules
from locality.speeds import Speeds
from locality.types import Part, Plan, PlanError

SOON_SECONDS = 0.01
"""The least time after which a batch that is late is looked at again."""


class Answer(Enum):
    """What became of a commit; the value says why it counts or not."""

    ACCEPTED = "accepted"
    REPEATED = "this lease was committed before, and nothing changed"
    SUPERSEDED = "another lease on the same items was committed first"
    EXPIRED = "this lease has ended, and its items were given back"
    UNKNOWN = "there is no such lease"


@dataclass(frozen=True, slots=True)
class Lease:
    """Items that `node` works on until `deadline`, or later if it is heard of.

    `lease_id` names the batch and `token`, which grows with every lease given, who may commit it: a copy has the id of
    the first lease and a token of its own. `origin` is the node whose queue it was taken from, None after it was
    given back.
    """

    lease_id: int
    token: int
    node: str
    parts: tuple[Part, ...]
    deadline: float
    origin: str | None

    @property
    def items(self) -> int:
        """Items in it."""
        return sum(part.items for part in self.parts)


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now, but items may come back: ask again at `until`."""

    until: float


@dataclass
class _Run:
    """A lease that has not ended; `ends` is when it is thought to."""

    lease: Lease
    begun: float
    ends: float


@dataclass
class _Batch:
    """The same items under one lease or more, token -> node, of which those in `live` may still be committed."""

    items: int
    nodes: dict[int, str] = field(default_factory=dict)
    live: set[int] = field(default_factory=set)
    committed: int | None = None


@dataclass
class _Member:
    """A node that takes part: when it last was heard of, committed, and took or committed; what it runs; its queue."""

    heard: float
    committed: float
    active: float
    queue: PartQueue = field(default_factory=PartQueue)
    running: set[int] = field(default_factory=set)


class Leases:
    """Pure and without threads or a clock: `now`, in seconds, never goes back; what is due by then happens first.

    A take, a commit or a heartbeat costs O(log n), and more only for the leases that one node holds at once and for
    what became due; the loss of a node costs O(n). Of every batch ever given a few numbers are kept, so that a late
    commit is answered: one batch an item at most, and one more for each that is given back. PlanError when a node
    asks that does not take part.
    """

    def __init__(
        self,
        plan: Plan,
        capability: Mapping[str, float],
        now: float,
        rules: Rules = Rules(),
        cost: AccessCost | None = None,
    ) -> None:
        """Nodes of `plan` with a capability above 0 take part; items of any other are for everyone."""
        self._rules = rules
        self._cost = cost
        self._members: dict[str, _Member] = {}
        self._pool = PartQueue()
        self._runs: dict[int, _Run] = {}
        self._batches: dict[int, _Batch] = {}
        self._token = 0
        self._queues = LatestFirst[str]()
        self._single = LatestFirst[int]()
        self._late: list[tuple[float, int]] = []
        self._silent: list[tuple[float, str]] = []
        self._watched: set[str] = set()
        self._speeds = Speeds(max(capability.values(), default=1.0) or 1.0)
        self._left = self._waiting = sum(plan.loads().values())
        for node, parts in plan.parts.items():
            if capability.get(node, 0) > 0:
                self.join(node, capability[node], now)
                # What it must fetch comes last: where it turns out slow, others take that, and fewer bytes move.
                self._members[node].queue.add(sorted(parts, key=lambda part: not part.is_local(node)))
                self._rank(node, now)
            else:
                self._pool.add(parts)

    @property
    def left(self) -> int:
        """Items not committed; at 0 the work is done."""
        return self._left

    def join(self, node: str, capability: float, now: float) -> None:
        """Let a node take part that has no queue: it takes what was given back, and steals. PlanError if it does."""
        self.expire(now)
        if node in self._members:
            raise PlanError(f"node {node} takes part already", remedy="report it lost before it joins again")
        if not (math.isfinite(capability) and capability > 0):
            raise PlanError(f"node {node} cannot join with capability {capability}: it must be a finite number above 0")
        self._members[node] = _Member(now, now, now)
        self._speeds.add(node, capability)
        if node not in self._watched:  # otherwise it was lost, and is still looked at in time
            self._watched.add(node)
            heapq.heappush(self._silent, (now + self._rules.lease_seconds, node))

    def take(self, node: str, now: float) -> Lease | Wait | None:
        """One batch for `node`; Wait when there is none now; None when all items are committed."""
        member = self._hear(node, now)
        member.active = now
        if not self._left:
            return None
        lease = self._own(node, member, now) or self._give_from_pool(node, now)
        if lease or not self._rules.steal:
            return lease or Wait(now + self._rules.wait_seconds)
        return self._steal(node, now) or self._copy(node, now)

    def commit(self, lease_id: int, token: int, now: float) -> Answer:
        """Count the items of a lease as done, if it is the first of its batch and has not ended; its node lives."""
        self.expire(now)
        batch = self._batches.get(lease_id)
        if batch is None or token not in batch.nodes:
            return Answer.UNKNOWN
        if member := self._members.get(batch.nodes[token]):
            member.heard = member.active = now
        if batch.committed is not None:
            return Answer.REPEATED if batch.committed == token else Answer.SUPERSEDED
        if token not in batch.live:
            return Answer.EXPIRED
        batch.committed = token
        self._left -= batch.items
        run = self._runs[token]
        self._see(run, now)
        for live in batch.live:
            self._end(live)
        self._single.drop(lease_id)
        self._rank(run.lease.node, now)
        return Answer.ACCEPTED

    def heartbeat(self, node: str, now: float, starting: bool = False) -> frozenset[int]:
        """Note that `node` lives; the tokens of its leases that still count. One that is `starting` keeps its queue."""
        member = self._hear(node, now)
        member.active = now if starting else member.active
        if not member.running:
            self._rank(node, now)  # the longer it takes nothing, the later it is thought to end
        return frozenset(member.running)

    def expire(self, now: float) -> list[Lease]:
        """Take back what silent nodes hold; returns the leases that ended. Every operation begins with this."""
        ended: list[Lease] = []
        while self._silent and self._silent[0][0] <= now:
            node = heapq.heappop(self._silent)[1]
            member = self._members.get(node)
            if member is None:
                self._watched.discard(node)
                continue
            until = member.heard + self._rules.lease_seconds
            if until <= now:
                ended += self._take_back(node, member)
                until = now + self._rules.lease_seconds
            elif not member.running and member.active + self._rules.lease_seconds <= now:
                self._take_queue(node, member)
            heapq.heappush(self._silent, (until, node))
        self._look_at_late(now)
        return ended

    def lost(self, node: str, now: float) -> list[Lease]:
        """Take back at once what `node` holds; it takes part no more. Returns the leases that ended."""
        ended = self.expire(now)
        if node in self._members:
            ended += self._take_back(node, self._members[node])
            del self._members[node]
            self._speeds.remove(node)
        return ended

    def _hear(self, node: str, now: float) -> _Member:
        member = self._members.get(node)
        if member is None:
            raise PlanError(f"node {node} takes no part in this work", remedy="let it join first")
        self.expire(now)
        member.heard = now
        return member

    def _own(self, node: str, member: _Member, now: float) -> Lease | None:
        if not member.queue.items:
            return None
        lease = self._give(node, member.queue.first(self._size(node)), node, now)
        self._rank(node, now)
        return lease

    def _give_from_pool(self, node: str, now: float) -> Lease | None:
        if not self._pool.items:
            return None
        return self._give(node, self._pool.last(self._size(node), self._price(node)), None, now)

    def _steal(self, node: str, now: float) -> Lease | None:
        """Half of what waits for the node that ends last, at most as much as is done before that one would end."""
        victim = self._queues.first(lambda other: self._finish(other, now))
        if victim is None:
            return None
        queue = self._members[victim].queue
        in_time = (self._finish(victim, now) - now) * self._speeds.of(node)
        items = math.floor(min(self._size(node), math.ceil(queue.items / 2), in_time))
        if items < 1:
            return None
        lease = self._give(node, queue.last(items, self._price(node)), victim, now)
        self._rank(victim, now)
        return lease

    def _copy(self, node: str, now: float) -> Lease | Wait:
        """A copy of the batch that ends last of those without one, if it takes at most half of the time left; or wait.

        A copy that gains little would keep a faster node, free a moment later, from making one.
        """
        longest = now + self._rules.wait_seconds
        batch_id = self._single.first(lambda single: self._run_of(single).ends)
        if batch_id is None:
            return Wait(longest)
        run = self._run_of(batch_id)
        if run.lease.node == node or now + 2 * run.lease.items / self._speeds.of(node) > run.ends:
            return Wait(min(longest, run.ends))
        self._single.drop(batch_id)
        return self._start(batch_id, node, run.lease.parts, run.lease.origin, now)

    def _size(self, node: str) -> int:
        """Items in the next batch of a node: of its part of all that waits, the share that the rules say."""
        rules, speed = self._rules, self._speeds.of(node)
        share = math.ceil(rules.share * self._waiting * speed / max(speed, self._speeds.total()))
        least = math.ceil(min(rules.at_once, speed * rules.least_seconds))
        whole = share - share % rules.at_once if share > rules.at_once else share
        return max(1, min(rules.most_items, max(least, whole)))

    def _price(self, node: str) -> Callable[[Part], float]:
        """What to prefer when `node` takes from the back: what it holds, then the fewest seconds per byte."""
        cost = self._cost

        def price(part: Part) -> float:
            holders = part.block.replicas
            if node in holders or cost is None:
                return float(node not in holders)
            return 1 + min((cost.seconds_per_byte(node, holder) for holder in holders), default=math.inf)

        return price

    def _give(self, node: str, parts: list[Part], origin: str | None, now: float) -> Lease:
        items = sum(part.items for part in parts)
        self._waiting -= items
        batch_id = len(self._batches)
        self._batches[batch_id] = _Batch(items)
        lease = self._start(batch_id, node, tuple(parts), origin, now)
        self._single.put(batch_id, self._runs[lease.token].ends)
        return lease

    def _start(self, batch_id: int, node: str, parts: tuple[Part, ...], origin: str | None, now: float) -> Lease:
        batch, member = self._batches[batch_id], self._members[node]
        self._token += 1
        lease = Lease(batch_id, self._token, node, parts, now + self._rules.lease_seconds, origin)
        ends = self._busy_until(member, now) + batch.items / self._speeds.of(node)
        self._runs[lease.token] = _Run(lease, now, ends)
        heapq.heappush(self._late, (ends, lease.token))
        batch.nodes[lease.token] = node
        batch.live.add(lease.token)
        member.running.add(lease.token)
        return lease

    def _end(self, token: int) -> _Run:
        """A lease counts no more."""
        run = self._runs.pop(token)
        self._members[run.lease.node].running.discard(token)
        return run

    def _take_back(self, node: str, member: _Member) -> list[Lease]:
        """End the leases of a node; what nobody else works on, and its queue, is for everyone."""
        ended = [self._end(token).lease for token in sorted(member.running)]
        for lease in ended:
            batch = self._batches[lease.lease_id]
            batch.live.discard(lease.token)
            if batch.live:
                self._single.put(lease.lease_id, self._run_of(lease.lease_id).ends)
            else:
                self._single.drop(lease.lease_id)
                self._pool.add(lease.parts)
                self._waiting += lease.items
        self._take_queue(node, member)
        return ended

    def _take_queue(self, node: str, member: _Member) -> None:
        self._pool.add(member.queue.first(member.queue.items))
        self._queues.drop(node)

    def _see(self, run: _Run, now: float) -> None:
        """Learn the speed of a node from a batch that it committed."""
        member = self._members[run.lease.node]
        seconds = now - max(run.begun, member.committed)
        member.committed = now
        if seconds > 0:
            self._speeds.see(run.lease.node, run.lease.items / seconds)

    def _look_at_late(self, now: float) -> None:
        """Batches that did not end when they should: the more time they took, the more they may still take."""
        late: list[_Run] = []
        while self._late and self._late[0][0] <= now:
            token = heapq.heappop(self._late)[1]
            if token in self._runs:
                late.append(self._runs[token])
        for run in late:
            seconds = max(now - max(run.begun, self._members[run.lease.node].committed), SOON_SECONDS)
            run.ends = now + seconds
            self._speeds.at_most(run.lease.node, run.lease.items / (2 * seconds))
            heapq.heappush(self._late, (run.ends, run.lease.token))
            if len(self._batches[run.lease.lease_id].live) == 1:
                self._single.put(run.lease.lease_id, run.ends)
            self._rank(run.lease.node, now)

    def _rank(self, node: str, now: float) -> None:
        """Note anew when a node would finish, if something waits for it."""
        if self._members[node].queue.items:
            self._queues.put(node, self._finish(node, now))
        else:
            self._queues.drop(node)

    def _finish(self, node: str, now: float) -> float:
        member = self._members[node]
        return self._busy_until(member, now) + member.queue.items / self._speeds.of(node)

    def _busy_until(self, member: _Member, now: float) -> float:
        """When it would take its next batch: one that works on nothing is late like a batch that does not end."""
        if not member.running:
            return 2 * now - member.active
        return max(now, *(self._runs[token].ends for token in member.running))

    def _run_of(self, batch_id: int) -> _Run:
        """The only lease on a batch."""
        (token,) = self._batches[batch_id].live
        return self._runs[token]
