"""Shares that each member works out for itself are the same for all, and fit who computes."""

from __future__ import annotations

import json
import random

import pytest

from learning.member.share_plan import SharePlan

BATCH = 1000
MEMBERS = ("a", "b", "c")
SPEEDS = {"a": 1000.0, "b": 2000.0, "c": 4000.0}


def run(plan: SharePlan, members: tuple[str, ...], first: int, steps: int, noise: float = 0.02) -> dict[str, int]:
    dice = random.Random(first)
    for step in range(first, first + steps):
        shares = plan.of(BATCH)
        seconds = {name: shares[name] / SPEEDS[name] * dice.uniform(1 - noise, 1 + noise) for name in members}
        plan.see(step, shares, seconds)
    return plan.of(BATCH)


def test_shares_follow_speeds() -> None:
    plan = SharePlan(BATCH)
    plan.begin(MEMBERS, 0, {})

    shares = run(plan, MEMBERS, 0, 30)

    assert sum(shares.values()) == BATCH
    told = [plan.share_of(name) for name in MEMBERS]
    assert {name: one.samples for name, one in zip(MEMBERS, told, strict=True)} == shares
    assert {(one.batch, one.since, one.is_guess, one.gain) for one in told} == {
        (BATCH, told[0].since, False, told[0].gain)
    }
    assert 0 < told[0].since <= 30 and told[0].gain and told[0].gain > 1
    assert shares["a"] < 0.7 * shares["b"] < 0.7 * 0.7 * shares["c"]


@pytest.mark.parametrize("measures", [{}, {"a": 0.1, "b": 0.2, "c": 0.4}, {"c": 12_000.0}], ids=["none", "all", "own"])
def test_a_newcomer_computes_whatever_the_unit_of_its_measure(measures: dict[str, float]) -> None:
    plan = SharePlan(BATCH)
    plan.begin(("a", "b"), 0, {})
    run(plan, ("a", "b"), 0, 20)

    plan.begin(MEMBERS, 20, measures)

    assert 0.15 * BATCH < plan.of(BATCH)["c"] < 0.75 * BATCH
    assert run(plan, MEMBERS, 20, 30)["c"] > 0.45 * BATCH


def test_who_gets_the_plan_of_another_goes_on_alike() -> None:
    plan, other = SharePlan(BATCH), SharePlan(BATCH)
    plan.begin(MEMBERS, 0, {})
    run(plan, MEMBERS, 0, 7, noise=0.3)

    other.load(json.loads(json.dumps(plan.to_json())))

    assert [run(one, MEMBERS, 7, 25, noise=0.3) for one in (plan, other)] == [plan.of(BATCH)] * 2
    assert other.to_json() == plan.to_json()


def test_the_last_batch_of_an_epoch_is_divided_alike() -> None:
    plan = SharePlan(BATCH)
    plan.begin(MEMBERS, 0, SPEEDS)

    assert sum(plan.of(123).values()) == 123


def test_a_standby_is_tried_again_and_gets_its_share_once_it_is_fast() -> None:
    plan = SharePlan(100)
    plan.begin(["a", "b"], 0, {})
    for step in range(8):
        plan.see(step, plan.of(100), {"a": 1.0, "b": 500.0})
    assert plan.of(100)["b"] == 0

    for step in range(8, 400):
        shares = plan.of(100)
        plan.see(step, shares, {name: 0.01 * share for name, share in shares.items()})

    assert plan.of(100)["b"] > 40
