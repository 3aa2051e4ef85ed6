"""Nodes that begin later than others: they get less, and what is called the earliest end is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locality.balance import earliest_end, quickest_shares, whole_targets
from locality.baselines import Static
from locality.bounds import makespan_lower_bound, moved_load, rooms
from locality.explain import Reason, moves
from locality.leases import Leases
from locality.policies import POLICIES, policy
from locality.quality import measure_quality
from locality.rules import Rules
from locality.simulation.invented import Shape, invent
from locality.simulation.simulate import Cluster, Machine, simulate
from locality.types import Block, Part, Plan, PlanError, Terms
from tests.locality.instances import KINDS, Instance, Size, assert_divides, instance
from tests.locality.linear_programs import fewest_bytes, shortest_makespan

SMALL, SEEDS = Size(8, 20, 12), range(2000, 2012)
COUNTING = ("algorithm1", "algorithm1_replicas", "maxflow", "min_cost")
"""Policies that look at when nodes begin."""
RULES = Rules(lease_seconds=math.inf)

every_kind = pytest.mark.parametrize("kind", KINDS)
problems = st.lists(
    st.tuples(st.floats(0.1, 100), st.just(0.0) | st.floats(0, 50), st.integers(0, 60)), min_size=1, max_size=6
)


def late(kind: str, seed: int) -> Instance:
    """An instance of which half of the nodes begin later, some of them when all could be done."""
    what, rng = instance(kind, seed, SMALL), Random(f"{kind} {seed} starts")
    shortest = what.items / math.fsum(what.capability.values())
    starts = {node: rng.uniform(0, 2 * shortest) for node in what.capability if rng.random() < 0.5}
    return replace(what, terms=replace(what.terms, starts=starts))


def lates(kind: str) -> Iterator[Instance]:
    return (late(kind, seed) for seed in SEEDS)


def ends(plan: Plan, what: Instance) -> float:
    """When a plan is done that is followed blindly, by the simulator."""
    starts = what.terms.starts
    machines = {node: Machine(value, begins_at=starts.get(node, 0)) for node, value in what.capability.items() if value}
    return simulate(Static(plan), Cluster(machines)).makespan_seconds if what.items else 0.0


def test_a_node_that_begins_twenty_seconds_later_gets_what_it_could_do_in_them_less() -> None:
    alike, starts = {"n1": 1.0, "n2": 1.0}, {"n2": 20.0}

    assert quickest_shares(100, alike, starts) == whole_targets(100, alike, starts) == {"n1": 60, "n2": 40}
    assert makespan_lower_bound(100, alike, starts) == 60.0
    assert rooms(100, alike, 0.1, starts) == {"n1": 66, "n2": 46}


def test_a_node_that_begins_when_all_is_done_gets_nothing() -> None:
    capability, starts = {"n1": 1.0, "n2": 50.0}, {"n2": 9.5}

    assert quickest_shares(9, capability, starts) == whole_targets(9, capability, starts) == {"n1": 9, "n2": 0}
    assert rooms(9, capability, 0.0, starts) == {"n1": 9, "n2": 0}
    assert makespan_lower_bound(9, capability, starts) == 9.0


def test_if_all_wait_equally_long_the_plan_is_as_if_none_did() -> None:
    capability, starts = {"n1": 1.0, "n2": 3.0}, {"n1": 500.0, "n2": 500.0}

    assert whole_targets(40, capability, starts) == whole_targets(40, capability)
    assert rooms(40, capability, 0.1, starts) == rooms(40, capability, 0.1)
    assert makespan_lower_bound(40, capability, starts) == 510.0


def test_without_items_nothing_ends_late() -> None:
    assert makespan_lower_bound(0, {"n1": 1.0}, {"n1": 7.0}) == 0.0
    assert rooms(0, {"n1": 1.0}, 0.02, {"n1": 7.0}) == {"n1": 0}


@pytest.mark.parametrize("start", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("name", COUNTING)
def test_a_beginning_that_is_no_moment_is_refused(name: str, start: float) -> None:
    with pytest.raises(PlanError, match=r"node n2 begins at .*: it must be a finite number of 0 or more"):
        policy(name)([Block("b", 4, 4, ("n1",))], {"n1": 1.0, "n2": 1.0}, Terms(starts={"n2": start}))


@given(problems)
def test_at_the_earliest_end_the_nodes_have_done_just_all(problem: list[tuple[float, float, int]]) -> None:
    capability, starts = _named(problem)
    items = sum(count for _, _, count in problem)

    end = earliest_end(items, capability, starts)

    done = sum(Fraction(capability[node]) * max(Fraction(0), end - Fraction(starts[node])) for node in capability)
    assert done == items if items else end == 0


@given(problems)
def test_no_division_ends_before_the_bound(problem: list[tuple[float, float, int]]) -> None:
    capability, starts = _named(problem)
    counts = {f"n{i}": count for i, (_, _, count) in enumerate(problem)}

    ended = max((starts[node] + count / capability[node] for node, count in counts.items() if count), default=0.0)

    assert ended * (1 + 1e-12) >= makespan_lower_bound(sum(counts.values()), capability, starts)


@given(problems)
def test_the_quickest_shares_end_when_the_earliest_of_whole_items_do(problem: list[tuple[float, float, int]]) -> None:
    capability, starts = _named(problem)
    items = sum(count for _, _, count in problem)

    shares = quickest_shares(items, capability, starts)

    worked = [Fraction(starts[node]) + load / Fraction(capability[node]) for node, load in shares.items() if load]
    assert sum(shares.values()) == items
    assert max(worked, default=Fraction(0)) == shortest_makespan(items, capability, starts)


def _named(problem: list[tuple[float, float, int]]) -> tuple[dict[str, float], dict[str, float]]:
    capability = {f"n{i}": speed for i, (speed, _, _) in enumerate(problem)}
    return capability, {f"n{i}": start for i, (_, start, _) in enumerate(problem)}


@every_kind
def test_rooms_are_what_nodes_can_do_until_the_latest_end(kind: str) -> None:
    for what in lates(kind):
        room = rooms(what.items, what.capability, what.terms.epsilon, what.terms.starts)
        end = _latest_end(what)
        for node, value in what.capability.items():
            seconds = max(0.0, end - what.terms.starts.get(node, 0.0))
            can = min(what.items, seconds * value)
            assert room[node] == pytest.approx(can, abs=1 + 1e-9 * can), f"{what} {node}"
            assert room[node] <= seconds * value * (1 + 1e-9) + 1e-9, f"{what} {node}"


def _latest_end(what: Instance) -> float:
    capability, starts = what.capability, what.terms.starts
    begun = min(starts.get(node, 0.0) for node, value in capability.items() if value)
    bound = makespan_lower_bound(what.items, capability, starts)
    shortest = float(shortest_makespan(what.items, capability, starts))
    return max(bound + what.terms.epsilon * max(0.0, bound - begun), shortest)


@every_kind
@pytest.mark.parametrize("name", ["maxflow", "min_cost"])
def test_plans_end_in_time_and_move_no_more_than_that_takes(name: str, kind: str) -> None:
    for what in lates(kind):
        plan = policy(name)(what.blocks, what.capability, what.terms)
        room = rooms(what.items, what.capability, what.terms.epsilon, what.terms.starts)
        assert_divides(plan, what.blocks, what.capability)
        assert all(load <= room[node] for node, load in plan.loads().items()), str(what)
        assert ends(plan, what) <= _latest_end(what) * (1 + 1e-9), str(what)
        if name == "maxflow":
            assert moved_load(plan).size_bytes == pytest.approx(fewest_bytes(what.blocks, room), rel=1e-9, abs=1)


@every_kind
@pytest.mark.parametrize("name", ["maxflow", "min_cost"])
def test_who_looks_at_the_beginnings_never_ends_later_than_who_does_not(name: str, kind: str) -> None:
    for what in lates(kind):
        exactly = replace(what, terms=replace(what.terms, epsilon=0.0))
        counted, blind = _with_and_without(name, exactly)
        assert counted <= blind * (1 + 1e-9), str(what)


@every_kind
@pytest.mark.parametrize("name", ["algorithm1", "algorithm1_replicas"])
def test_rounding_costs_the_formula_at_most_one_item(name: str, kind: str) -> None:
    for what in lates(kind):
        counted, blind = _with_and_without(name, what)
        slowest = min(value for value in what.capability.values() if value)
        bound = makespan_lower_bound(what.items, what.capability, what.terms.starts)
        assert bound * (1 - 1e-9) <= counted <= (bound + 1 / slowest) * (1 + 1e-9), str(what)
        assert counted <= (blind + 1 / slowest) * (1 + 1e-9), str(what)


def _with_and_without(name: str, what: Instance) -> tuple[float, float]:
    """When the plan ends that looks at the beginnings, and the one that does not."""
    blind = replace(what.terms, starts={})
    counted, unaware = (policy(name)(what.blocks, what.capability, terms) for terms in (what.terms, blind))
    return ends(counted, what), ends(unaware, what)


def test_where_nodes_begin_very_late_the_blind_plan_is_much_later() -> None:
    both = [_with_and_without("maxflow", what) for kind in ("uniform", "skewed") for what in lates(kind) if what.items]

    assert median(counted / blind for counted, blind in both) < 0.8


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_what_is_said_of_a_plan_counts_when_nodes_begin(name: str) -> None:
    for what in (late(kind, seed) for kind in KINDS for seed in SEEDS[:3]):
        plan = policy(name)(what.blocks, what.capability, what.terms)
        quality = measure_quality(plan, what.blocks, what.capability, what.terms)
        machines = {
            node: Machine(value, begins_at=what.terms.starts.get(node, 0)) for node, value in what.capability.items()
        }
        assert quality.makespan_seconds == pytest.approx(ends(plan, what), rel=1e-9), str(what)
        assert quality.lower_bound_seconds == pytest.approx(Cluster(machines).bound(what.blocks), rel=1e-9), str(what)
        assert quality.makespan_over_bound >= 1 - 1e-9 or not what.items, str(what)


def test_a_holder_that_begins_late_is_full_with_less() -> None:
    block = Block("b", 100, 100, ("n2",))
    plan = Plan({"n1": (Part(block, 0, 60),), "n2": (Part(block, 60, 40),)})

    (move,) = moves(plan, {"n1": 1.0, "n2": 1.0}, {"n2": 20.0})
    (unaware,) = moves(plan, {"n1": 1.0, "n2": 1.0})

    assert (move.reason, move.text) == (Reason.HOLDERS_FULL, "held by n2 (40 of its own, its share is 40)")
    assert unaware.reason is Reason.AVOIDABLE


def test_leases_end_no_later_and_move_less_when_the_plan_knows_who_begins_late() -> None:
    ended, moved = [], []
    for seed in range(20):
        trial, rng = invent(seed, Shape(8, 800, 0.1)), Random(seed)
        shortest = 800 / sum(trial.capability.values())
        starts = {node: shortest * rng.random() for node in trial.capability if rng.random() < 0.5}
        late_ones = {
            node: replace(one, begins_at=starts.get(node, 0.0)) for node, one in trial.cluster.machines.items()
        }
        cluster = replace(trial.cluster, machines=late_ones)
        counted, blind = (
            simulate(
                Leases(policy("maxflow")(trial.blocks, trial.capability, terms), trial.capability, 0.0, RULES), cluster
            )
            for terms in (Terms(starts=starts), Terms())
        )
        assert counted.makespan_seconds >= cluster.bound(trial.blocks) * (1 - 1e-9)
        ended.append(counted.makespan_seconds / blind.makespan_seconds)
        moved.append(counted.moved_bytes / blind.moved_bytes)

    assert median(ended) <= 1.005
    assert median(moved) < 0.5


def test_a_machine_does_nothing_before_it_begins() -> None:
    machine = Machine(2.0, slower_at=10.0, slower_by=4.0, begins_at=4.0)

    assert machine.ends(0.0, 4.0) == 6.0
    assert machine.ends(8.0, 4.0) == 10.0
    assert (machine.done_by(3.0), machine.done_by(6.0), machine.done_by(14.0)) == (0.0, 4.0, 14.0)
    assert Machine(2.0, slower_at=1.0, slower_by=2.0, begins_at=4.0).done_by(6.0) == 2.0
