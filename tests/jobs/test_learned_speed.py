"""Speeds of pairs that never ran, from those that did."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.submitter.learned_speed import held_out_error, learn, with_newest

NODES = [f"n{number}" for number in range(8)]
PROGRAMS = [f"p{number}" for number in range(5)]


def table(seed: int, noise: float) -> dict[tuple[str, str], float]:
    """Speeds of every pair: a node's times a program's, times what the pair has for itself."""
    drawn = random.Random(seed)
    nodes = {node: drawn.uniform(-1, 1) for node in NODES}
    programs = {program: drawn.uniform(-3, 3) for program in PROGRAMS}
    return {
        (node, program): math.exp(nodes[node] + programs[program] + drawn.gauss(0, noise))
        for node in NODES
        for program in PROGRAMS
    }


def test_what_never_ran_together_is_told_from_the_rest() -> None:
    whole = table(1, 0.0)
    told = {pair: speed for number, (pair, speed) in enumerate(whole.items()) if number % 3}

    found = learn(told)

    for pair in whole.keys() - told.keys():
        assert found.speed(*pair) == pytest.approx(whole[pair], rel=0.15)
    for pair in told:
        assert found.speed(*pair) == told[pair], "what ran keeps its own speed"


def test_the_error_that_is_told_is_that_of_pairs_which_were_not_told() -> None:
    exact, noisy = held_out_error(table(2, 0.0)), held_out_error(table(2, 0.3))

    assert exact is not None and noisy is not None
    assert exact < 0.05
    assert 0.15 < noisy < 0.45


def test_shares_are_of_the_fastest_node_and_a_node_without_any_run_is_a_usual_one() -> None:
    found = learn({("fast", "a"): 10.0, ("slow", "a"): 2.5, ("fast", "b"): 8.0})

    shares = found.shares("b", ["fast", "slow", "new"])
    assert shares["fast"] == 1.0
    assert shares["slow"] < shares["new"] < 1.0
    assert found.shares("never", NODES) == {}
    assert found.speed("fast", "never") is None


def test_two_programs_can_have_opposite_orders() -> None:
    found = learn({("a", "read"): 9.0, ("b", "read"): 3.0, ("a", "think"): 1.0, ("b", "think"): 4.0})

    assert found.shares("read", "ab") == {"a": 1.0, "b": pytest.approx(1 / 3)}
    assert found.shares("think", "ab") == {"a": 0.25, "b": 1.0}


def test_without_pairs_to_leave_out_no_error_is_told() -> None:
    assert held_out_error({}) is None
    assert held_out_error({("a", "p"): 1.0, ("b", "q"): 2.0}) is None


def test_the_newest_run_moves_the_average_by_its_part() -> None:
    assert with_newest(None, 4.0) == 4.0
    assert with_newest(math.nan, 4.0) == 4.0
    assert with_newest(1.0, 10.0) == pytest.approx(10**0.3)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(NODES), st.sampled_from(PROGRAMS)), st.floats(allow_nan=True, allow_infinity=True)
    )
)
def test_whatever_is_recorded_makes_shares_of_0_to_1(seen: dict[tuple[str, str], float]) -> None:
    found = learn(seen)

    for program in PROGRAMS:
        shares = found.shares(program, NODES)
        assert all(0 <= share <= 1 for share in shares.values())
        assert not shares or max(shares.values()) == 1
