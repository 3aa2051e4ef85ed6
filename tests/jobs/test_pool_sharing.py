"""Whose turn it is among the jobs of a pool: by weight, whatever sizes leases have, and nobody waits for ever."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from jobs.kinds.pool.sharing import Shares

LARGEST = 64
weights = st.dictionaries(st.sampled_from("abcde"), st.floats(0.1, 10), min_size=2)
leases = st.lists(st.integers(1, LARGEST), min_size=1, max_size=200)


def serve(shares: Shares, sizes: list[int], given: dict[str, int], without: frozenset[str] = frozenset()) -> None:
    """Give leases of these sizes to whoever has anything, in its turn."""
    for size in sizes:
        for name in shares.order():
            if name in without:
                shares.rest(name)
                continue
            shares.charge(name, size)
            given[name] += size
            break


@given(weights, leases)
def test_what_each_was_given_by_its_weight_differs_by_a_lease_at_most(
    weights: dict[str, float], sizes: list[int]
) -> None:
    shares, given = Shares(), dict.fromkeys(weights, 0)
    for name, weight in weights.items():
        shares.add(name, weight)

    serve(shares, sizes, given)

    for one in weights:
        for other in weights:
            had = given[one] / weights[one] - given[other] / weights[other]
            assert abs(had) <= LARGEST / weights[one] + LARGEST / weights[other] + 1e-6


@given(weights, leases, leases)
def test_who_comes_later_or_had_nothing_to_give_takes_nothing_back(
    weights: dict[str, float], before: list[int], after: list[int]
) -> None:
    first, second, *_ = weights
    shares, given = Shares(), dict.fromkeys(weights, 0)
    for name, weight in weights.items():
        if name != second:
            shares.add(name, weight)
    idle = frozenset(weights) - {first}
    serve(shares, before, given, without=idle)
    shares.add(second, weights[second])
    given = dict.fromkeys(weights, 0)

    serve(shares, after, given)

    for name in weights:
        if name != first:
            had = given[name] / weights[name] - given[first] / weights[first]
            assert abs(had) <= 2 * (LARGEST / weights[name] + LARGEST / weights[first]) + 1e-6


@given(st.integers(1, 9), st.integers(1, 9))
def test_equal_leases_are_shared_as_exactly_as_they_can_be(one: int, other: int) -> None:
    shares, given = Shares(), {"a": 0, "b": 0}
    shares.add("a", one)
    shares.add("b", other)

    serve(shares, [1] * (one + other) * 10, given)

    assert abs(Fraction(given["a"], one) - Fraction(given["b"], other)) <= Fraction(1, one) + Fraction(1, other)
    assert given["a"] > 0 < given["b"]


def test_a_job_that_has_ended_has_no_turn() -> None:
    shares = Shares()
    shares.add("a", 1)
    shares.add("b", 1)
    shares.rest("a")

    shares.remove("a")

    assert shares.order() == ["b"]
