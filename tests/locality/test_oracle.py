"""The planner against linear programs that HiGHS solves: on every instance, what is called optimal is.

HiGHS takes a solution as optimal when no item could save 1e-7 bytes, and a plan's bytes are whole while a
item's may be fractions: so bytes agree within 1 or a billionth. Policies that weigh seconds may round them to a
thousandth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache

import pytest

from locality.bounds import fewest_bytes_moved, moved_load, rooms
from locality.policies import min_cost, policy
from tests.locality.instances import KINDS, Instance, Size, assert_divides, instance
from tests.locality.linear_programs import access_seconds, fewest_access_seconds, fewest_bytes, shortest_makespan

SMALL, SEEDS, FEWER_SEEDS = Size(8, 20, 12), range(100), range(35)
MEDIUM = Size(30, 200, 30)
LARGE = Size(100, 1000, 20)
SINGLE_ITEMS = Size(200, 5000, 1)

every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def seeds(request: pytest.FixtureRequest) -> range:
    """The seeds of the small instances: all of them with --long."""
    return SEEDS if request.config.getoption("--long") else FEWER_SEEDS


@cache
def small(kind: str, seed: int) -> tuple[Instance, dict[str, int], float]:
    """A small instance, the rooms of its nodes, and the fewest bytes by the linear program."""
    what = instance(kind, seed, SMALL)
    room = rooms(what.items, what.capability, what.terms.epsilon)
    return what, room, fewest_bytes(what.blocks, room)


def smalls(kind: str, seeds: range) -> Iterator[tuple[Instance, dict[str, int], float]]:
    return (small(kind, seed) for seed in seeds)


def same_bytes(expected: float) -> object:
    return pytest.approx(expected, rel=1e-9, abs=1)


@every_kind
def test_the_fewest_bytes_are_those_of_the_linear_program(kind: str, seeds: range) -> None:
    for what, room, fewest in smalls(kind, seeds):
        assert fewest_bytes_moved(what.blocks, room) == same_bytes(fewest), str(what)


@every_kind
def test_maxflow_moves_the_fewest_bytes_and_gives_no_node_more_than_its_room(kind: str, seeds: range) -> None:
    for what, room, fewest in smalls(kind, seeds):
        plan = policy("maxflow")(what.blocks, what.capability, what.terms)
        assert_divides(plan, what.blocks, what.capability)
        assert all(load <= room[node] for node, load in plan.loads().items()), str(what)
        assert moved_load(plan).size_bytes == same_bytes(fewest), str(what)


def latest_end(what: Instance) -> Fraction:
    """Epsilon above the lower bound, or what is shortest in whole items if that is later."""
    bound = Fraction(what.items) / sum(map(Fraction, what.capability.values()), Fraction(0))
    return max((1 + Fraction(what.terms.epsilon)) * bound, shortest_makespan(what.items, what.capability))


@every_kind
def test_rooms_are_what_nodes_can_do_until_the_latest_end(kind: str, seeds: range) -> None:
    for what, room, _ in smalls(kind, seeds):
        end, rounding = latest_end(what), Fraction(1, 10**12)
        assert room.keys() == what.capability.keys(), str(what)
        assert sum(room.values()) >= what.items, str(what)
        for node, value in what.capability.items():
            least, most = (math.floor(Fraction(value) * end * (1 + sign * rounding)) for sign in (-1, 1))
            assert min(least, what.items) <= room[node] <= most, f"{what} {node}"


@every_kind
@pytest.mark.parametrize("name", ["maxflow", "min_cost"])
def test_ends_within_epsilon_of_the_bound_or_of_what_whole_items_allow(name: str, kind: str, seeds: range) -> None:
    for what, _, _ in smalls(kind, seeds):
        loads = policy(name)(what.blocks, what.capability, what.terms).loads()
        end = latest_end(what) * (1 + Fraction(1, 10**12))
        assert all(load <= end * Fraction(what.capability[node]) for node, load in loads.items()), str(what)


@every_kind
def test_algorithm1_replicas_has_the_loads_of_algorithm1_and_moves_the_fewest_bytes_for_them(
    kind: str, seeds: range
) -> None:
    for what, _, _ in smalls(kind, seeds):
        first = policy("algorithm1")(what.blocks, what.capability, what.terms)
        plan = policy("algorithm1_replicas")(what.blocks, what.capability, what.terms)
        assert_divides(plan, what.blocks, what.capability)
        assert plan.loads() == first.loads(), str(what)
        assert moved_load(plan).size_bytes <= moved_load(first).size_bytes, str(what)
        assert moved_load(plan).size_bytes == same_bytes(fewest_bytes(what.blocks, first.loads())), str(what)


@every_kind
def test_min_cost_reads_in_the_fewest_seconds(kind: str, seeds: range) -> None:
    for what, room, _ in smalls(kind, seeds):
        assert_min_cost_is_optimal(what, room)


@every_kind
def test_min_cost_reads_in_the_fewest_seconds_at_thirty_nodes(kind: str) -> None:
    what = instance(kind, 1, MEDIUM, exactly=True)
    assert_min_cost_is_optimal(what, rooms(what.items, what.capability, what.terms.epsilon))


def assert_min_cost_is_optimal(what: Instance, room: Mapping[str, int]) -> None:
    cost = what.terms.cost
    plan = policy("min_cost")(what.blocks, what.capability, what.terms)
    assert_divides(plan, what.blocks, what.capability)
    assert all(load <= room[node] for node, load in plan.loads().items()), str(what)
    fewest = fewest_access_seconds(what.blocks, room, cost)
    assert access_seconds(plan, cost) == pytest.approx(fewest, rel=1e-3, abs=1e-12), str(what)
    by_bytes = policy("maxflow")(what.blocks, what.capability, what.terms)
    assert access_seconds(plan, cost) <= access_seconds(by_bytes, cost) * (1 + 1e-3) + 1e-12, str(what)


@every_kind
@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_nodes_and_a_thousand_blocks(kind: str, seed: int) -> None:
    assert_maxflow_moves_the_fewest_bytes(instance(kind, seed, LARGE, exactly=True))


@pytest.mark.parametrize("kind", ["skewed", "wild_sizes", "alike"])
def test_two_hundred_nodes_and_five_thousand_items_in_blocks_of_their_own(kind: str) -> None:
    assert_maxflow_moves_the_fewest_bytes(instance(kind, 0, SINGLE_ITEMS, exactly=True))


def assert_maxflow_moves_the_fewest_bytes(what: Instance) -> None:
    room = rooms(what.items, what.capability, what.terms.epsilon)
    fewest = fewest_bytes(what.blocks, room)
    plan = policy("maxflow")(what.blocks, what.capability, what.terms)
    assert_divides(plan, what.blocks, what.capability)
    assert all(load <= room[node] for node, load in plan.loads().items()), str(what)
    assert fewest_bytes_moved(what.blocks, room) == same_bytes(fewest), str(what)
    assert moved_load(plan).size_bytes == same_bytes(fewest), str(what)


@every_kind
def test_min_cost_by_racks_is_never_dearer_than_maxflow(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(min_cost, "EVERY_WAY", 0)
    for seed in range(3):
        what = instance(kind, seed, MEDIUM, exactly=True)
        room, cost = rooms(what.items, what.capability, what.terms.epsilon), what.terms.cost
        plan, by_bytes = (policy(name)(what.blocks, what.capability, what.terms) for name in ("min_cost", "maxflow"))
        assert_divides(plan, what.blocks, what.capability)
        assert all(load <= room[node] for node, load in plan.loads().items()), str(what)
        assert access_seconds(plan, cost) <= access_seconds(by_bytes, cost) * (1 + 1e-9), str(what)
