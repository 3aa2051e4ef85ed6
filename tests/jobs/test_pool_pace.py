"""Which worker of a pool would be done first, by what it needed so far and what it holds."""

from __future__ import annotations

import math

import pytest

from jobs.kinds.pool.pace import Pace

FAST, SLOW = "fast", "slow"


def make(processes: int = 1, batch: int = 8) -> Pace:
    """A pool with two workers, of which one needs 0.1 s for a picture, and the other 0.5 s."""
    pace = Pace(processes, batch)
    for node, seconds in ((FAST, 0.1), (SLOW, 0.5)):
        pace.give(node, "1:1", processes, 0.0)
        pace.end(node, "1:1", seconds)
    return pace


def test_who_was_faster_so_far_is_done_first_and_a_new_one_is_thought_to_be_as_fast() -> None:
    pace = make()

    assert pace.seconds_until_done(FAST, 3, 0.0, asks=True) == pytest.approx(0.3)
    assert pace.seconds_until_done(SLOW, 3, 0.0, asks=True) == pytest.approx(1.5)
    assert pace.seconds_until_done("new", 3, 0.0, asks=True) == pytest.approx(0.3)


def test_before_anything_is_known_all_are_alike() -> None:
    assert Pace(1, 8).seconds_until_done(FAST, 3, 0.0, asks=True) == 0.0


def test_processes_look_at_pictures_side_by_side() -> None:
    pace = make(processes=4)

    assert pace.seconds_until_done(FAST, 4, 0.0, asks=True) == pytest.approx(0.1)
    assert pace.seconds_until_done(FAST, 5, 0.0, asks=True) == pytest.approx(0.2)


def test_what_a_worker_holds_comes_before_it_asks_again() -> None:
    pace = make()
    pace.give(FAST, "1:2", 10, 0.0)

    assert pace.is_busy(FAST)
    assert pace.seconds_until_done(FAST, 1, 0.2, asks=False) == pytest.approx(0.9)
    assert pace.seconds_until_done(SLOW, 1, 0.2, asks=True) == pytest.approx(0.5)


def test_one_that_asks_has_at_most_what_its_processes_have_in_hand_before_the_picture() -> None:
    pace = make(batch=2)
    pace.give(FAST, "1:2", 100, 0.0)

    assert pace.seconds_until_done(FAST, 1, 0.0, asks=True) == pytest.approx(0.4 + 0.1)


def test_the_longer_one_is_late_the_later_it_is_expected() -> None:
    pace = make()
    pace.give(FAST, "1:2", 1, 0.0)

    late = [pace.seconds_until_done(FAST, 1, now, asks=False) for now in (1.0, 2.0, 3.0)]

    assert late == sorted(late)
    assert late[-1] > 2.0


def test_a_lease_that_the_worker_does_not_hold_any_more_does_not_count_and_teaches_nothing() -> None:
    pace = make()
    pace.give(FAST, "1:2", 10, 0.0)
    pace.give(FAST, "1:3", 10, 0.0)

    pace.keep(FAST, ["1:3"])
    pace.end(FAST, "1:2", 60.0)
    assert pace.seconds_until_done(FAST, 1, 0.0, asks=False) == pytest.approx(2.1), "expected when it was given"
    pace.forget(FAST)

    assert not pace.is_busy(FAST)
    assert pace.seconds_until_done(FAST, 1, 0.0, asks=True) == pytest.approx(0.1)


def test_a_worker_that_becomes_slower_is_known_to_be_so_after_some_leases() -> None:
    pace = make()

    for _ in range(20):
        pace.give(FAST, "1:2", 1, 0.0)
        pace.end(FAST, "1:2", 1.0)

    assert pace.seconds_until_done(FAST, 1, 0.0, asks=True) == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_a_time_that_nothing_takes_teaches_nothing(seconds: float) -> None:
    pace = make()

    pace.give(FAST, "1:2", 1, 0.0)
    pace.end(FAST, "1:2", seconds)

    assert pace.seconds_until_done(FAST, 1, 0.0, asks=True) == pytest.approx(0.1)
