"""Who is worth having: (T(n) - T(n+1) - dT_comm) * steps_left > cost of regrouping."""

from __future__ import annotations

from dataclasses import replace

import pytest

from locality.training.joining import Work, find_wanted
from locality.training.step_model import Line

NAMES = [f"p{number}" for number in range(8)]
EQUAL = {name: Line(0.0, 0.01).seconds for name in NAMES}
WORK = Work(100, EQUAL, dict.fromkeys(NAMES, 100), lambda members: 0.0, steps_left=100, regroup_seconds=10.0)


def wanted(members: int, waiting: int, work: Work, least: int = 1, most: int = 8) -> int:
    return len(find_wanted(NAMES[:members], NAMES[members : members + waiting], work, least, most))


def test_a_second_member_joins_when_what_it_saves_is_more_than_regrouping_costs() -> None:
    """One alone takes 1 s a step, two 0.5 s."""
    assert wanted(1, 1, replace(WORK, steps_left=21)) == 2
    assert wanted(1, 1, replace(WORK, steps_left=19)) == 1


def test_what_the_exchange_takes_longer_counts() -> None:
    work = replace(WORK, comm_seconds=lambda members: 0.45 * (members - 1))

    assert wanted(1, 1, replace(work, steps_left=201)) == 2
    assert wanted(1, 1, replace(work, steps_left=199)) == 1


def test_several_join_together_where_one_alone_would_not_pay() -> None:
    work = replace(WORK, steps_left=14)

    assert wanted(1, 1, work) == 1
    assert wanted(1, 3, work) == 4


def test_the_fastest_join_first_up_to_the_maximum() -> None:
    times = EQUAL | {"p3": Line(0.0, 0.001).seconds, "p2": Line(0.0, 0.1).seconds}

    assert find_wanted(["p0"], ["p1", "p2", "p3"], replace(WORK, times=times), 1, 2) == {"p0", "p3"}


def test_a_member_leaves_when_it_costs_more_than_it_brings_but_not_below_the_minimum() -> None:
    times = EQUAL | {"p2": Line(0.0, 10.0).seconds}
    work = replace(WORK, times=times, comm_seconds=lambda members: 0.2 * (members - 1))

    assert find_wanted(NAMES[:3], [], work, 1, 8) == {"p0", "p1"}
    assert find_wanted(NAMES[:3], [], work, 3, 8) == {"p0", "p1", "p2"}


def test_who_cannot_hold_the_batch_wants_everyone() -> None:
    assert wanted(1, 2, replace(WORK, most=dict.fromkeys(NAMES, 40))) == 3


@pytest.mark.parametrize("steps_left", [0, 1])
def test_towards_the_end_nothing_changes(steps_left: int) -> None:
    assert wanted(2, 4, replace(WORK, steps_left=steps_left)) == 2
