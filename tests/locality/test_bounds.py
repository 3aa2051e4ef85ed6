"""The bounds by hand, and that no plan beats them; beside linear programs they stand in test_oracle.py."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locality.bounds import fewest_bytes_moved, makespan_lower_bound, moved_load, rooms
from locality.policies import POLICIES
from locality.types import Block, Part, Plan, PlanError

NODES = ("n1", "n2", "n3", "n4", "n5")


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Block], dict[str, float]]:
    shape = st.tuples(
        st.integers(1, 8),
        st.integers(0, 5) | st.integers(0, 10**6),
        st.lists(st.sampled_from((*NODES, "gone")), unique=True, max_size=3),
    )
    shapes = draw(st.lists(shape, min_size=1, max_size=10))
    blocks = [Block(f"b{i}", n, size, tuple(homes)) for i, (n, size, homes) in enumerate(shapes)]
    numbers = st.integers(0, 9).map(float)
    capability = draw(st.dictionaries(st.sampled_from(NODES), numbers, min_size=1))
    return blocks, capability | {"n1": 1.0}


@pytest.mark.parametrize("name", sorted(POLICIES))
@given(problem=problems())
def test_no_policy_moves_fewer_bytes_than_the_fewest(name: str, problem: tuple[list[Block], dict[str, float]]) -> None:
    blocks, capability = problem
    plan = POLICIES[name](blocks, capability)
    assert moved_load(plan).size_bytes >= fewest_bytes_moved(blocks, plan.loads())


def test_items_already_accepted_make_room_for_others() -> None:
    blocks = [Block("a", 2, 200, ("n1", "n2")), Block("b", 2, 100, ("n1",)), Block("c", 2, 50, ("n2", "n3"))]
    assert fewest_bytes_moved(blocks, {"n1": 2, "n2": 2, "n3": 2}) == 0
    assert fewest_bytes_moved(blocks, {"n1": 2, "n2": 4, "n3": 0}) == 0
    assert fewest_bytes_moved(blocks, {"n1": 0, "n2": 3, "n3": 3}) == 100
    assert fewest_bytes_moved(blocks, {"n1": 3, "n2": 0, "n3": 3}) == 50


def test_more_room_than_items_lets_them_stay() -> None:
    blocks = [Block("a", 4, 400, ("n1",)), Block("b", 4, 40, ("n1", "n2"))]
    assert fewest_bytes_moved(blocks, {"n1": 4, "n2": 4}) == 0
    assert fewest_bytes_moved(blocks, {"n1": 3, "n2": 8}) == 100
    assert fewest_bytes_moved(blocks, {"n1": 8, "n2": 0, "n3": 8}) == 0


def test_a_room_is_epsilon_above_the_share_in_whole_items() -> None:
    assert rooms(100, {"n1": 1.0, "n2": 3.0, "n3": 0.0}, 0.02) == {"n1": 25, "n2": 76, "n3": 0}
    assert rooms(100, {"n1": 1.0, "n2": 3.0}, 0.0) == {"n1": 25, "n2": 75}


def test_a_room_is_what_whole_items_need_where_epsilon_is_less_than_one() -> None:
    assert rooms(4, {"n1": 1.0, "n2": 1.0, "n3": 1.0}, 0.02) == {"n1": 2, "n2": 2, "n3": 2}
    # The slow node's share, 1.6, rounds to 2, but all ends sooner when the fast one takes what is left over.
    assert rooms(100, {"n1": 98.4, "n2": 1.6}, 0.02) == {"n1": 100, "n2": 1}
    assert rooms(0, {"n1": 1.0}, 0.02) == {"n1": 0}


@pytest.mark.parametrize("room", [{}, {"n1": 3}, {"n1": 5, "n2": -1}])
def test_too_little_room_is_refused(room: dict[str, int]) -> None:
    with pytest.raises(PlanError, match="for 4 items: it must be 0 or more each, and enough for all"):
        fewest_bytes_moved([Block("b", 4, 4, ("n1",))], room)


def test_moved_counts_what_a_node_reads_from_others() -> None:
    stored, elsewhere = Block("a", 4, 1000, ("n1",)), Block("b", 4, 400, ("n3", "n2"))
    plan = Plan({"n1": (Part(stored, 0, 3),), "n2": (Part(stored, 3, 1), Part(elsewhere, 0, 4))})
    assert (moved_load(plan).items, moved_load(plan).size_bytes) == (1, 250)


def test_the_makespan_bound_is_items_over_the_sum_of_the_speeds() -> None:
    assert makespan_lower_bound(400, {"n1": 10.0, "n2": 30.0, "n3": 0.0}) == 10.0
    assert makespan_lower_bound(0, {}) == 0.0


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0.1, 100)), min_size=1, max_size=6))
def test_no_division_ends_before_the_makespan_bound(shares: list[tuple[int, float]]) -> None:
    speeds = {f"n{i}": speed for i, (_, speed) in enumerate(shares)}
    makespan = max(items / speed for items, speed in shares)
    assert makespan * (1 + 1e-12) >= makespan_lower_bound(sum(items for items, _ in shares), speeds)


@pytest.mark.parametrize("speed", [math.nan, math.inf, -1.0])
def test_a_speed_that_is_no_speed_is_refused(speed: float) -> None:
    with pytest.raises(PlanError, match="speed of node n2"):
        makespan_lower_bound(4, {"n1": 1.0, "n2": speed})


def test_work_without_any_speed_is_refused() -> None:
    with pytest.raises(PlanError, match="never ends"):
        makespan_lower_bound(4, {"n1": 0.0})
