"""The bounds, against a linear-programming solver that is not our own code."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from locality.bounds import fewest_bytes_moved, makespan_lower_bound, moved
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


def fewest_by_linear_program(blocks: list[Block], targets: dict[str, int]) -> float:
    """Every picture of block b goes to some node n, x_bn of them, at size / images bytes unless b lies on n."""
    nodes = list(targets)
    pairs = [(b, n) for b in blocks for n in nodes]
    cost = [0.0 if n in b.replicas else b.size_bytes / b.images for b, n in pairs]
    equal = [[float(b is block) for b, _ in pairs] for block in blocks]
    equal += [[float(n == node) for _, n in pairs] for node in nodes]
    solved = linprog(cost, A_eq=equal, b_eq=[b.images for b in blocks] + [targets[n] for n in nodes])
    assert solved.status == 0, solved.message
    return float(solved.fun)


@given(problems())
def test_the_fewest_bytes_are_those_of_the_linear_program(
    problem: tuple[list[Block], dict[str, float]],
) -> None:
    blocks, capability = problem
    targets = POLICIES["algorithm1"](blocks, capability).loads()
    best = fewest_by_linear_program(blocks, targets)
    assert fewest_bytes_moved(blocks, targets) == pytest.approx(best, rel=1e-6, abs=1)


@pytest.mark.parametrize("name", sorted(POLICIES))
@given(problem=problems())
def test_no_policy_moves_fewer_bytes_than_the_fewest(name: str, problem: tuple[list[Block], dict[str, float]]) -> None:
    blocks, capability = problem
    plan = POLICIES[name](blocks, capability)
    assert moved(plan).size_bytes >= fewest_bytes_moved(blocks, plan.loads())


def test_pictures_already_accepted_make_room_for_others() -> None:
    blocks = [Block("a", 2, 200, ("n1", "n2")), Block("b", 2, 100, ("n1",)), Block("c", 2, 50, ("n2", "n3"))]
    assert fewest_bytes_moved(blocks, {"n1": 2, "n2": 2, "n3": 2}) == 0
    assert fewest_bytes_moved(blocks, {"n1": 2, "n2": 4, "n3": 0}) == 0
    assert fewest_bytes_moved(blocks, {"n1": 0, "n2": 3, "n3": 3}) == 100
    assert fewest_bytes_moved(blocks, {"n1": 3, "n2": 0, "n3": 3}) == 50


@pytest.mark.parametrize("targets", [{}, {"n1": 3}, {"n1": 5, "n2": -1}])
def test_targets_that_do_not_add_up_are_refused(targets: dict[str, int]) -> None:
    with pytest.raises(PlanError, match="for 4 pictures: they must be 0 or more each and add up"):
        fewest_bytes_moved([Block("b", 4, 4, ("n1",))], targets)


def test_moved_counts_what_a_node_reads_from_others() -> None:
    stored, elsewhere = Block("a", 4, 1000, ("n1",)), Block("b", 4, 400, ("n3", "n2"))
    plan = Plan({"n1": (Part(stored, 0, 3),), "n2": (Part(stored, 3, 1), Part(elsewhere, 0, 4))})
    assert (moved(plan).images, moved(plan).size_bytes) == (1, 250)


def test_the_makespan_bound_is_pictures_over_the_sum_of_the_speeds() -> None:
    assert makespan_lower_bound(400, {"n1": 10.0, "n2": 30.0, "n3": 0.0}) == 10.0
    assert makespan_lower_bound(0, {}) == 0.0


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(0.1, 100)), min_size=1, max_size=6))
def test_no_division_ends_before_the_makespan_bound(shares: list[tuple[int, float]]) -> None:
    speeds = {f"n{i}": speed for i, (_, speed) in enumerate(shares)}
    makespan = max(images / speed for images, speed in shares)
    assert makespan * (1 + 1e-12) >= makespan_lower_bound(sum(images for images, _ in shares), speeds)


@pytest.mark.parametrize("speed", [math.nan, math.inf, -1.0])
def test_a_speed_that_is_no_speed_is_refused(speed: float) -> None:
    with pytest.raises(PlanError, match="speed of node n2"):
        makespan_lower_bound(4, {"n1": 1.0, "n2": speed})


def test_work_without_any_speed_is_refused() -> None:
    with pytest.raises(PlanError, match="never ends"):
        makespan_lower_bound(4, {"n1": 0.0})
