"""Leases: every item is committed exactly once, whatever nodes do, and somebody can always go on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from locality.cost import AccessCost
from locality.latest_first import LatestFirst
from locality.leases import Answer, Lease, Leases, Wait
from locality.part_queue import LOOK, PartQueue
from locality.rules import Rules
from locality.speeds import Speeds
from locality.types import Block, Part, Plan, PlanError

RULES = Rules(lease_seconds=10.0, most_items=8, share=1 / 4, wait_seconds=1.0)


def part(name: str, *replicas: str, items: int = 1, first: int = 0) -> Part:
    return Part(Block(name, first + items, 100 * (first + items), replicas), first, items)


def plan(**counts: int) -> Plan:
    """So many single items for each node, which holds them."""
    return Plan({node: tuple(part(f"{node}.{i}", node) for i in range(count)) for node, count in counts.items()})


def units(parts: Iterable[Part]) -> Counter[tuple[str, int]]:
    return Counter((p.block.name, item) for p in parts for item in range(p.first, p.first + p.items))


def taken(leases: Leases, node: str, now: float) -> Lease:
    lease = leases.take(node, now)
    assert isinstance(lease, Lease)
    return lease


def commit(leases: Leases, lease: Lease, now: float) -> Answer:
    return leases.commit(lease.lease_id, lease.token, now)


def names(lease: Lease) -> list[str]:
    return [p.block.name for p in lease.parts]


def test_a_node_reads_its_own_queue_in_the_order_of_the_plan_in_batches_that_shrink() -> None:
    leases = Leases(plan(a=16), {"a": 1.0}, 0.0, RULES)
    batches, now = [], 0.0
    while (lease := leases.take("a", now)) is not None:
        assert isinstance(lease, Lease)
        batches.append(names(lease))
        now += lease.items
        assert commit(leases, lease, now) is Answer.ACCEPTED

    assert [name for batch in batches for name in batch] == [f"a.{i}" for i in range(16)]
    assert [len(batch) for batch in batches] == [4, 3, 3, 2, 1, 1, 1, 1]
    assert leases.left == 0


def test_what_a_node_must_fetch_is_read_last_so_that_it_is_the_first_to_be_stolen() -> None:
    fetched, own = part("f", "b", items=4), part("o", "a", items=4)
    leases = Leases(Plan({"a": (fetched, own), "b": ()}), {"a": 1.0, "b": 1.0}, 0.0, RULES)

    assert names(taken(leases, "a", 0.0)) == ["o"]
    assert names(taken(leases, "b", 0.0)) == ["f"]


def test_a_batch_ends_inside_a_block_where_it_must() -> None:
    whole = part("b", "a", items=20)
    leases = Leases(Plan({"a": (whole,)}), {"a": 1.0}, 0.0, RULES)

    first, second = taken(leases, "a", 0.0), taken(leases, "a", 0.0)

    assert [(p.first, p.items) for p in first.parts + second.parts] == [(0, 5), (5, 4)]


def test_no_batch_is_larger_than_the_rules_allow() -> None:
    assert taken(Leases(plan(a=1000), {"a": 1.0}, 0.0, RULES), "a", 0.0).items == RULES.most_items


def test_what_is_more_than_a_node_looks_at_together_is_a_multiple_of_it() -> None:
    rules = replace(RULES, most_items=1000, at_once=32)

    sizes = [taken(Leases(plan(a=count), {"a": 1.0}, 0.0, rules), "a", 0.0).items for count in (100, 140, 300)]

    assert sizes == [25, 32, 64]


def test_batches_at_the_end_are_as_long_as_the_rules_say_and_no_longer_than_one_look() -> None:
    rules = replace(RULES, share=1e-9, at_once=8, least_seconds=2.0)
    leases = Leases(plan(slow=100, quick=100), {"slow": 1.0, "quick": 1.0}, 0.0, rules)
    quick, slow = taken(leases, "quick", 0.0), taken(leases, "slow", 0.0)
    commit(leases, quick, quick.items / 20)
    commit(leases, slow, slow.items / 1)

    assert (taken(leases, "slow", 2.0).items, taken(leases, "quick", 2.0).items) == (2, 8)


def test_an_idle_node_steals_from_the_back_of_the_queue_that_would_end_last() -> None:
    leases = Leases(plan(a=2, b=20, c=10), {"a": 1.0, "b": 1.0, "c": 1.0}, 0.0, RULES)
    commit(leases, taken(leases, "a", 0.0), 2.0)

    stolen = taken(leases, "a", 2.0)

    assert stolen.origin == "b"
    assert names(stolen) == ["b.19", "b.18", "b.17"]


def test_the_victim_is_chosen_by_speeds_seen_not_by_those_planned() -> None:
    """b was planned to be the fastest by far, and turns out to be the slowest."""
    capability = {"a": 1.0, "b": 50.0, "c": 1.0}
    leases = Leases(plan(a=1, b=20, c=20), capability, 0.0, replace(RULES, lease_seconds=math.inf))
    slow, quick, own = (taken(leases, node, 0.0) for node in ("b", "c", "a"))
    commit(leases, own, 1.0)
    commit(leases, quick, float(quick.items))
    commit(leases, slow, 8.0 * slow.items)

    assert taken(leases, "a", 8.0 * slow.items).origin == "b"


def test_a_thief_takes_at_most_half_of_a_queue() -> None:
    leases = Leases(plan(a=0, b=3), {"a": 100.0, "b": 1.0}, 0.0, Rules(share=1.0))

    assert taken(leases, "a", 0.0).items == 2


def test_a_slow_thief_does_not_take_what_the_owner_would_do_sooner() -> None:
    leases = Leases(plan(a=0, b=3), {"a": 1.0, "b": 100.0}, 0.0, RULES)

    assert isinstance(leases.take("a", 0.0), Wait)


def test_a_thief_prefers_what_it_holds_then_what_is_read_fastest() -> None:
    far, near, held = part("far", "x"), part("near", "y"), part("held", "b", "a")
    cost = AccessCost(racks={"a": "/1", "y": "/1", "x": "/2", "b": "/2"})
    queue = (held, near, far, part("b.0", "b"))
    leases = Leases(Plan({"a": (), "b": queue}), {"a": 1.0, "b": 0.01}, 0.0, RULES, cost)

    assert [names(taken(leases, "a", 0.0)) for _ in range(2)] == [["held"], ["near"]]


def test_a_thief_prefers_what_it_holds_also_where_no_cost_is_known() -> None:
    queue = (part("held", "b", "a"), part("b.0", "b"), part("b.1", "b"))
    leases = Leases(Plan({"a": (), "b": queue}), {"a": 1.0, "b": 0.01}, 0.0, RULES)

    assert names(taken(leases, "a", 0.0)) == ["held"]


def test_the_copy_of_a_batch_is_committed_once_by_whoever_is_first() -> None:
    leases = Leases(plan(a=1, b=1), {"a": 1.0, "b": 1.0}, 0.0, RULES)
    slow, quick = taken(leases, "b", 0.0), taken(leases, "a", 0.0)
    commit(leases, quick, 1.0)
    assert isinstance(leases.take("a", 1.0), Wait)

    copy = taken(leases, "a", 5.0)  # b is late by then

    assert (copy.lease_id, copy.parts) == (slow.lease_id, slow.parts)
    assert copy.token > slow.token
    assert commit(leases, copy, 6.0) is Answer.ACCEPTED
    assert leases.left == 0
    assert commit(leases, slow, 7.0) is Answer.SUPERSEDED
    assert commit(leases, copy, 8.0) is Answer.REPEATED
    assert leases.take("b", 8.0) is None


def test_a_batch_has_one_copy_at_most() -> None:
    leases = Leases(plan(a=1, b=1, c=1), {"a": 1.0, "b": 1.0, "c": 1.0}, 0.0, RULES)
    taken(leases, "b", 0.0)
    for node in ("a", "c"):
        commit(leases, taken(leases, node, 0.0), 1.0)
    taken(leases, "a", 5.0)

    assert isinstance(leases.take("c", 5.0), Wait)


def test_a_batch_whose_copy_is_lost_may_be_copied_again() -> None:
    leases = Leases(plan(a=1, b=1, c=1), {"a": 1.0, "b": 1.0, "c": 1.0}, 0.0, RULES)
    slow = taken(leases, "b", 0.0)
    for node in ("a", "c"):
        commit(leases, taken(leases, node, 0.0), 1.0)
    taken(leases, "a", 5.0)
    leases.lost("a", 5.0)

    assert taken(leases, "c", 5.0).lease_id == slow.lease_id


def test_a_lease_of_a_silent_node_ends_and_its_late_commit_is_refused() -> None:
    leases = Leases(plan(a=4, b=0), {"a": 1.0, "b": 1.0}, 0.0, RULES)
    lease = taken(leases, "a", 0.0)

    assert leases.expire(9.9) == []
    assert leases.expire(10.0) == [lease]
    assert commit(leases, lease, 10.0) is Answer.EXPIRED
    assert leases.left == 4


def test_what_is_due_happens_before_a_commit_at_the_same_moment() -> None:
    leases = Leases(plan(a=1), {"a": 1.0}, 0.0, RULES)

    assert commit(leases, taken(leases, "a", 0.0), 10.0) is Answer.EXPIRED


def test_a_heartbeat_keeps_leases_and_tells_which_still_count() -> None:
    leases = Leases(plan(a=1), {"a": 1.0}, 0.0, RULES)
    lease = taken(leases, "a", 0.0)

    assert leases.heartbeat("a", 9.0) == {lease.token}
    assert leases.expire(18.9) == []
    assert commit(leases, lease, 18.9) is Answer.ACCEPTED
    assert leases.heartbeat("a", 18.9) == frozenset()


def test_silence_counts_from_when_a_node_was_heard_of_last() -> None:
    leases = Leases(plan(a=4), {"a": 1.0}, 0.0, RULES)
    lease = taken(leases, "a", 4.0)

    assert leases.expire(13.9) == []
    assert leases.expire(14.0) == [lease]


def test_the_queue_of_a_node_that_never_came_is_done_by_others() -> None:
    leases = Leases(plan(a=0, b=6), {"a": 1.0, "b": 1000.0}, 0.0, RULES)
    assert isinstance(leases.take("a", 9.0), Wait)  # b is thought to be much faster

    assert taken(leases, "a", 11.0).origin is None


def test_a_lost_node_gives_everything_back_and_has_to_join_again() -> None:
    leases = Leases(plan(a=4, b=4), {"a": 1.0, "b": 1.0}, 0.0, RULES)
    lease = taken(leases, "a", 0.0)

    assert leases.lost("a", 1.0) == [lease]
    assert leases.lost("a", 1.0) == []
    assert commit(leases, lease, 1.0) is Answer.EXPIRED
    with pytest.raises(PlanError, match="node a takes no part"):
        leases.take("a", 1.0)
    leases.join("a", 1.0, 2.0)
    assert taken(leases, "a", 2.0).origin is None


def test_nodes_outside_the_plan_and_of_capability_0_take_part_only_when_they_are_let_join() -> None:
    leases = Leases(plan(a=4, c=2), {"a": 1.0, "b": 1.0, "c": 0.0}, 0.0, RULES)
    for node in ("b", "c", "unknown"):
        with pytest.raises(PlanError, match=f"node {node} takes no part"):
            leases.take(node, 0.0)

    leases.join("b", 1.0, 0.0)

    assert names(taken(leases, "b", 0.0))[0].startswith("c."), "what a node of capability 0 was given is for all"
    with pytest.raises(PlanError, match="takes part already"):
        leases.join("b", 1.0, 0.0)


@pytest.mark.parametrize("capability", [0.0, -1.0, math.nan, math.inf])
def test_a_node_cannot_join_with_a_capability_that_says_nothing(capability: float) -> None:
    with pytest.raises(PlanError, match="cannot join with capability"):
        Leases(plan(a=1), {"a": 1.0}, 0.0, RULES).join("b", capability, 0.0)


def test_a_commit_of_something_never_given_is_refused() -> None:
    leases = Leases(plan(a=4), {"a": 1.0}, 0.0, RULES)
    lease = taken(leases, "a", 0.0)

    assert leases.commit(lease.lease_id, lease.token + 1, 0.0) is Answer.UNKNOWN
    assert leases.commit(lease.lease_id + 1, lease.token, 0.0) is Answer.UNKNOWN
    assert leases.left == 4


def test_nothing_to_do_is_done() -> None:
    assert Leases(plan(a=0), {"a": 1.0}, 0.0, RULES).take("a", 0.0) is None


def test_the_queue_of_a_node_that_is_heard_of_but_takes_nothing_is_done_by_others() -> None:
    leases, now = Leases(plan(a=4, b=8), {"a": 1.0, "b": 1.0}, 0.0, RULES), 0.0
    while now < 60 and (lease := leases.take("a", now)) is not None:
        now = now + 1.01 * lease.items if isinstance(lease, Lease) else lease.until
        if isinstance(lease, Lease):
            assert commit(leases, lease, now) is Answer.ACCEPTED
        leases.heartbeat("b", now)

    assert leases.left == 0
    assert now < 20


def test_a_node_that_takes_nothing_loses_its_queue_however_fast_it_is_thought_to_be() -> None:
    leases = Leases(plan(a=0, b=1), {"a": 1e-9, "b": 1.0}, 0.0, RULES)
    for now in range(2 * int(RULES.lease_seconds)):
        assert isinstance(leases.take("a", float(now)), Wait) or now >= RULES.lease_seconds
        leases.heartbeat("b", float(now))

    assert leases.heartbeat("a", 20.0), "a got what b did not take"


def test_of_two_owners_the_one_that_takes_nothing_is_robbed() -> None:
    leases = Leases(plan(a=0, b=8, c=20), {"a": 1.0, "b": 1.0, "c": 1.0}, 0.0, replace(RULES, lease_seconds=100.0))
    now = 0.0
    while now < 12:
        lease = taken(leases, "c", now)
        now += lease.items
        commit(leases, lease, now)
        leases.heartbeat("b", now)
    taken(leases, "c", now)  # it would end at 20, long after b if b would ask

    assert taken(leases, "a", now).origin == "b"


def test_a_node_that_has_done_nothing_yet_copies_from_one_that_hangs() -> None:
    """That b is slow says nothing of a: otherwise a would seem just as slow, and wait for ever."""
    leases = Leases(plan(a=0, b=2), {"a": 1.0, "b": 1.0}, 0.0, RULES)
    commit(leases, taken(leases, "b", 0.0), 1.0)
    hung = taken(leases, "b", 1.0)
    for now in range(2, 9):
        leases.heartbeat("b", float(now))

    assert taken(leases, "a", 9.0).lease_id == hung.lease_id


def test_a_commit_counts_as_being_heard_of() -> None:
    leases = Leases(plan(a=8, b=0), {"a": 1.0, "b": 1.0}, 0.0, RULES)
    lease = taken(leases, "a", 0.0)
    assert commit(leases, lease, 9.9) is Answer.ACCEPTED

    assert taken(leases, "a", 10.0).origin == "a"
    assert leases.expire(19.8) == []


def test_a_commit_that_is_refused_counts_as_being_heard_of_too() -> None:
    leases = Leases(plan(a=8), {"a": 1.0}, 0.0, RULES)
    done, running = taken(leases, "a", 0.0), taken(leases, "a", 0.0)
    commit(leases, done, 1.0)
    assert commit(leases, done, 8.0) is Answer.REPEATED

    assert leases.expire(17.9) == []
    assert leases.expire(18.0) == [running]


def test_what_is_due_happens_before_a_node_joins() -> None:
    leases = Leases(plan(a=4), {"a": 1.0}, 0.0, RULES)
    lease = taken(leases, "a", 0.0)
    leases.join("b", 1.0, 10.0)

    assert leases.expire(10.0) == []
    assert commit(leases, lease, 10.0) is Answer.EXPIRED


def test_a_node_that_comes_back_often_is_looked_at_once() -> None:
    leases = Leases(plan(a=4, b=1), {"a": 1.0, "b": 1.0}, 0.0, RULES)
    for _ in range(100):
        leases.lost("b", 1.0)
        leases.join("b", 1.0, 1.0)

    assert len(leases._silent) == 2
    lease = taken(leases, "b", 5.0)
    assert leases.expire(14.9) == []
    assert leases.expire(15.0) == [lease], "it is looked at still"


def test_a_node_counts_with_its_capability_after_all_that_were_seen_are_gone() -> None:
    speeds = Speeds(1.0)
    for number, node in enumerate("abc"):
        speeds.add(node, 0.1 * (number + 1))
        speeds.see(node, 0.1 * (number + 1))
    for node in "abc":
        speeds.remove(node)
    speeds.add("d", 0.5)

    assert speeds.of("d") == speeds.total() == 0.5


def test_estimates_that_keep_changing_are_not_kept_for_ever() -> None:
    items = LatestFirst[int]()
    for moment in range(10_000):
        items.put(moment % 10, float(moment))

    assert len(items._heap) < 100
    assert items.first(lambda item: 9_990.0 + item) == 9


@pytest.mark.parametrize("capability", [{"a": 1e308, "b": 1e308}, {"a": 5e-324, "b": 1e308}, {"a": 1e-300, "b": 1.0}])
def test_capabilities_of_any_size_are_only_compared(capability: dict[str, float]) -> None:
    leases = Leases(plan(a=20, b=20), capability, 0.0, RULES)
    leases.lost("b", 0.0)
    now = 0.0
    while isinstance(lease := leases.take("a", now), Lease):
        now += 1.0
        assert commit(leases, lease, now) is Answer.ACCEPTED

    assert leases.left == 0


def test_a_queue_gives_only_from_its_back_however_long_it_is() -> None:
    queue = PartQueue([part("held", "a"), *(part(f"b.{i}", "b") for i in range(LOOK))])

    first = queue.last(1, lambda p: float("a" not in p.block.replicas))
    rest = queue.last(1000, lambda p: float("a" not in p.block.replicas))

    assert [p.block.name for p in first] == [f"b.{LOOK - 1}"]
    assert rest[0].block.name == "held"
    assert (len(rest), queue.items) == (LOOK, 0)


class AnyOrder(RuleBasedStateMachine):
    """Nodes that take, commit late or never, fall silent, are lost and come back, against a model of what is done."""

    nodes = ("a", "b", "c")

    @initialize(
        blocks=st.lists(st.tuples(st.sampled_from(nodes), st.integers(0, 9)), min_size=1, max_size=8),
        speeds=st.lists(st.floats(0.01, 100), min_size=3, max_size=3),
    )
    def begin(self, blocks: list[tuple[str, int]], speeds: list[float]) -> None:
        queues: dict[str, list[Part]] = {node: [] for node in self.nodes}
        for number, (node, items) in enumerate(blocks):
            queues[node].append(part(f"b{number}", node, items=items, first=number))
        self.all = units(p for parts in queues.values() for p in parts)
        self.now = 0.0
        self.capability = dict(zip(self.nodes, speeds, strict=True))
        shares = Plan({node: tuple(parts) for node, parts in queues.items()})
        self.leases = Leases(shares, self.capability, self.now, RULES)
        self.given: list[Lease] = []
        self.done: Counter[tuple[str, int]] = Counter()
        self.committed: dict[int, int] = {}
        self.heard = dict.fromkeys(self.nodes, self.now)
        self.alive = set(self.nodes)
        self.dead: set[int] = set()

    def hear(self, node: str) -> None:
        self.silence()
        self.heard[node] = self.now

    def silence(self) -> None:
        """Whoever was silent for too long has no leases, by a rule of its own and not by the word of the leases."""
        for lease in self.given:
            if self.now >= self.heard[lease.node] + RULES.lease_seconds:
                self.dead.add(lease.token)

    @rule(node=st.sampled_from(nodes))
    def take(self, node: str) -> None:
        if node not in self.alive:
            with pytest.raises(PlanError):
                self.leases.take(node, self.now)
            return
        self.hear(node)
        lease = self.leases.take(node, self.now)
        if lease is None:
            assert self.done == self.all
        elif isinstance(lease, Wait):
            assert lease.until > self.now
            others = self.alive - {node} - {n for n in self.alive if self.now >= self.heard[n] + RULES.lease_seconds}
            assert self.running() or others, "a node waits for nobody"
        else:
            self.check(lease)
            self.given.append(lease)

    def check(self, lease: Lease) -> None:
        assert 0 < lease.items <= RULES.most_items
        assert lease.token > max((earlier.token for earlier in self.given), default=0)
        assert not units(lease.parts) & self.done, "given out although it is done"
        others = [other for other in self.running() if units(other.parts) & units(lease.parts)]
        assert len(others) <= 1
        assert all(other.lease_id == lease.lease_id and other.parts == lease.parts for other in others)

    def running(self) -> list[Lease]:
        return [g for g in self.given if g.token not in self.dead and g.lease_id not in self.committed]

    @precondition(lambda self: self.given)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.given))
        self.silence()
        answer = self.leases.commit(lease.lease_id, lease.token, self.now)
        self.heard[lease.node] = self.now
        if lease.lease_id in self.committed:
            first = self.committed[lease.lease_id] == lease.token
            assert answer is (Answer.REPEATED if first else Answer.SUPERSEDED)
        elif lease.token in self.dead:
            assert answer is Answer.EXPIRED
        else:
            assert answer is Answer.ACCEPTED
            self.committed[lease.lease_id] = lease.token
            self.done += units(lease.parts)

    @rule(seconds=st.sampled_from([0.0, 0.5, 2.0, 4.0, 6.0, 9.5, 11.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.silence()
        self.leases.expire(self.now)

    @rule(node=st.sampled_from(nodes))
    def lose(self, node: str) -> None:
        self.silence()
        self.leases.lost(node, self.now)
        self.alive.discard(node)
        self.dead |= {lease.token for lease in self.given if lease.node == node}

    @rule(node=st.sampled_from(nodes))
    def come_back(self, node: str) -> None:
        if node not in self.alive:
            self.leases.join(node, self.capability[node], self.now)
            self.alive.add(node)
            self.hear(node)

    @rule(node=st.sampled_from(nodes))
    def beat(self, node: str) -> None:
        if node in self.alive:
            self.hear(node)
            counting = {lease.token for lease in self.running() if lease.node == node}
            assert self.leases.heartbeat(node, self.now) == counting

    @invariant()
    def each_item_is_done_once_at_most(self) -> None:
        assert set(self.done.values()) <= {1}
        assert self.leases.left == self.all.total() - self.done.total()

    def teardown(self) -> None:
        """One node ends the work, in a bounded number of steps, though one other only beats and one is silent."""
        if not hasattr(self, "leases"):
            return
        for node in ("a", "b"):
            self.come_back(node)
            for lease in self.running():
                if lease.node == node:
                    self.finish(lease)
        for _ in range(20 * (self.all.total() + 10)):
            self.beat("b")
            self.hear("a")
            given = self.leases.take("a", self.now)
            if given is None:
                break
            if isinstance(given, Wait):
                self.now = given.until
                continue
            self.check(given)
            self.given.append(given)
            self.now += 0.5
            self.finish(given)
        assert self.done == self.all

    def finish(self, lease: Lease) -> None:
        self.silence()
        if lease in self.running():
            assert commit(self.leases, lease, self.now) is Answer.ACCEPTED
            self.heard[lease.node] = self.now
            self.committed[lease.lease_id] = lease.token
            self.done += units(lease.parts)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
