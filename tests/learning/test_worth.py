"""Who may join members that compute: by steps of 64 samples, of which a second holds ten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from learning.lead.calls import Done, Share
from learning.lead.worth import ENOUGH_STEPS, Worth
from locality.training.generation_events import Generation

MADE = Generation(1, 1, ("a", "b"), 0, from_checkpoint=False, behind=(), store="a:1")
MEMBERS = frozenset("ab")
STEPS = 1000
SAMPLE_SECONDS = 0.1 / 64
"""A step takes one node 0.1 s, two 0.05 s, three 0.033 s."""


def make_done(steps: int, waited: float = 0.0, of: int = STEPS, sample_seconds: float = SAMPLE_SECONDS) -> Done:
    share = Share(32, 64, 0, is_guess=True, fixed_seconds=0.0, sample_seconds=sample_seconds)
    return Done(steps, of, 32 * steps, 0.05 * steps, waited, share=share)


def find(
    first: Done, then: Done, waiting: str = "c", measures: dict[str, float] | None = None, most: int = 4
) -> frozenset[str]:
    """Who is wanted at the second of two looks."""
    worth = Worth(most)
    assert worth.find_wanted(MADE, waiting, {"a": first, "b": first}, measures or {}) == MEMBERS
    return worth.find_wanted(MADE, waiting, {"a": then, "b": then}, measures or {})


def test_a_process_joins_when_it_saves_more_than_the_change_costs() -> None:
    """It saves 0.0167 s of each step, and costs a second."""
    for left, expected in ((70, MEMBERS | {"c"}), (50, MEMBERS)):
        assert find(make_done(100), make_done(STEPS - left)) == expected


def test_a_slow_node_saves_less_than_one_like_the_others() -> None:
    measures = {"a": 2.0, "b": 2.0, "c": 0.2}

    assert find(make_done(0), make_done(900), measures=measures) == MEMBERS
    assert find(make_done(0), make_done(200), measures=measures) == MEMBERS | {"c"}


def test_the_fixed_part_of_a_step_is_not_divided() -> None:
    share = replace(make_done(0).share, fixed_seconds=0.04, sample_seconds=SAMPLE_SECONDS / 5)
    slow, then = replace(make_done(0), share=share), replace(make_done(800), share=share)

    assert find(slow, then) == MEMBERS
    assert find(make_done(0), make_done(800)) == MEMBERS | {"c"}


def test_an_exchange_that_takes_longer_with_more_members_keeps_others_out() -> None:
    """Of 0.06 s with two members it would take three 0.02 s longer."""
    assert find(make_done(0), make_done(500, waited=500 * 0.04)) == MEMBERS | {"c"}
    assert find(make_done(0), make_done(500, waited=500 * 0.06)) == MEMBERS


def test_as_many_join_as_there_is_room_for() -> None:
    assert find(make_done(0), make_done(500), waiting="cde") == MEMBERS | {"c", "d"}
    assert find(make_done(0), make_done(500), waiting="cde", most=2) == MEMBERS


@pytest.mark.parametrize(
    "then",
    [make_done(9 + ENOUGH_STEPS), make_done(500, sample_seconds=0.0), replace(make_done(500), share=Share())],
    ids=str,
)
def test_nobody_joins_before_members_are_known(then: Done) -> None:
    assert find(make_done(10), then) == MEMBERS


def test_a_member_without_samples_is_judged_as_those_that_wait() -> None:
    worth, idle = Worth(4), replace(make_done(0), share=Share(0, 64))
    assert worth.find_wanted(MADE, "c", {"a": make_done(0), "b": idle}, {}) == MEMBERS
    told = {"a": make_done(300), "b": replace(idle, steps=300)}

    assert worth.find_wanted(MADE, "c", told, {}) == MEMBERS | {"c"}


def test_a_member_that_has_not_spoken_is_waited_for() -> None:
    worth = Worth(4)
    for steps in (0, 500):
        assert worth.find_wanted(MADE, "c", {"a": make_done(steps)}, {}) == MEMBERS


def test_each_generation_is_known_anew() -> None:
    worth = Worth(4)
    for made, steps, expected in (
        (MADE, 0, MEMBERS),
        (replace(MADE, number=2), 300, MEMBERS),
        (replace(MADE, number=2), 310, MEMBERS | {"c"}),
    ):
        assert worth.find_wanted(made, "c", {"a": make_done(steps), "b": make_done(steps)}, {}) == expected
