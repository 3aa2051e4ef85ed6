"""What is named when shares change: what moved, and not what always moves."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from locality.training.explaining import LEAST_RATIO, ShareChange, find_moved, find_node, known_reason

NUMBERS = st.floats(min_value=-1e9, max_value=1e9)
VALUES = st.dictionaries(st.sampled_from("abcdef"), NUMBERS)


@given(VALUES, VALUES, st.dictionaries(st.sampled_from("abcdef"), st.lists(NUMBERS, max_size=20)))
def test_what_is_named_did_move(
    before: dict[str, float], now: dict[str, float], earlier: dict[str, list[float]]
) -> None:
    moved = find_moved(before, now, earlier)

    if moved is not None:
        assert (moved.before, moved.now) == (before[moved.name], now[moved.name])
        assert abs(moved.now - moved.before) > LEAST_RATIO * max(abs(moved.before), abs(moved.now))


@given(VALUES, st.dictionaries(st.sampled_from("abcdef"), st.lists(NUMBERS, max_size=20)))
def test_nothing_is_named_when_nothing_moved(values: dict[str, float], earlier: dict[str, list[float]]) -> None:
    assert find_moved(values, dict(values), earlier) is None


@given(st.floats(min_value=0.01, max_value=1e6), st.integers(min_value=0, max_value=1000))
def test_a_value_that_always_jumps_is_not_named_beside_one_that_never_does(scale: float, seed: int) -> None:
    dice = random.Random(seed)
    jumping = [scale * dice.uniform(0.5, 1.5) for _ in range(12)]
    earlier = {"jumps": jumping, "rests": [scale] * 12}

    moved = find_moved(
        {"jumps": jumping[-1], "rests": scale}, {"jumps": scale * dice.uniform(0.5, 1.5), "rests": 0.5 * scale}, earlier
    )

    assert moved is not None and moved.name == "rests"


@given(st.lists(st.integers(min_value=1, max_value=1000), min_size=3, max_size=20), st.data())
def test_the_node_that_became_slower_is_the_one_whose_share_moved_most(speeds: list[int], data: st.DataObject) -> None:
    slow = data.draw(st.integers(min_value=0, max_value=len(speeds) - 1))
    later = [speed / 8 if node == slow else speed for node, speed in enumerate(speeds)]
    batch = 1_000_000
    before, now = (
        {str(node): round(batch * speed / sum(all_speeds)) for node, speed in enumerate(all_speeds)}
        for all_speeds in (speeds, later)
    )
    others = {share / max(before[node], 1) for node, share in now.items() if node != str(slow)}

    if max(others) < 2:  # else the others are those whose shares moved the most
        assert find_node(before, now) == str(slow)


def test_a_guess_that_held_for_long_is_no_reason_for_a_change() -> None:
    guess = ShareChange(0, 0.0, {"a": 4, "b": 4}, is_guess=True)

    assert known_reason(guess, ShareChange(3, 1.0, {"a": 1, "b": 7}), "") == "the first steps were measured"
    assert known_reason(guess, ShareChange(30, 9.0, {"a": 1, "b": 7}), "") == ""
