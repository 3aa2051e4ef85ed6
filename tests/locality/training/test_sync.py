"""How often members average: what users write, and a choice that follows the network."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locality.training.sync import MOST_AUTO_STEPS, AutoSync, Sync, parse_sync
from locality.types import PlanError


def test_what_users_write() -> None:
    assert parse_sync("every") == Sync(1)
    assert parse_sync("auto") == Sync(1, is_auto=True)
    assert parse_sync("local:1024") == Sync(1024)


@pytest.mark.parametrize("text", ["", "step", "local", "local:0", "local:1025", "local:-1", "local:4 ", "local:1e2"])
def test_anything_else_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(PlanError, match="write every, auto or local:H, H from 1 to 1024"):
        parse_sync(text)


def play(network: Callable[[int], float], steps: int) -> list[int]:
    """H at each step, T_compute being 1 s and T_comm what `network` says of the step after which members average."""
    sync, chosen = AutoSync(), list[int]()
    while len(chosen) < steps:
        chosen += [sync.local_steps] * sync.local_steps
        sync = sync.see(network(len(chosen)), 1.0)
    return chosen


@given(st.integers(0, 40), st.integers(50, 90), st.floats(1.1, 100), st.floats(0, 0.45))
def test_thin_and_good_networks_are_followed_within_ten_steps(thin: int, good: int, slow: float, quick: float) -> None:
    chosen = play(lambda step: slow if thin < step <= good else quick, 120)

    assert set(chosen[: thin + 1]) == {1}
    assert 1 not in chosen[thin + 10 : good]
    assert set(chosen[good + 10 :]) == {1}


def test_one_slow_average_is_no_thin_network() -> None:
    assert set(play(lambda step: 5.0 if step % 3 else 0.1, 60)) == {1}


def test_between_thin_and_good_nothing_changes() -> None:
    thin = AutoSync(local_steps=4)

    assert thin.see(0.6, 1.0) == thin
    assert thin.see(3.0, 1.0) == AutoSync(local_steps=8)
    assert thin.see(0.4, 1.0) == AutoSync()
    assert AutoSync().see(0.9, 1.0) == AutoSync()


@pytest.mark.parametrize(("ratio", "local_steps"), [(1.01, 4), (2.0, 4), (2.1, 8), (1e6, 8)])
def test_the_exchange_takes_half_as_long_as_a_round_computes_if_rounds_need_not_be_too_long(
    ratio: float, local_steps: int
) -> None:
    sync = AutoSync()
    for _ in range(3):
        sync = sync.see(ratio, 1.0)

    assert sync.local_steps == local_steps <= MOST_AUTO_STEPS


@pytest.mark.parametrize(("comm", "compute"), [(-1.0, 1.0), (1.0, 0.0), (math.nan, 1.0), (1.0, math.inf)])
def test_what_is_not_a_reading_is_refused(comm: float, compute: float) -> None:
    with pytest.raises(ValueError, match="is not a reading"):
        AutoSync().see(comm, compute)
