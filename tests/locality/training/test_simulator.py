"""Whole runs on played nodes: no sample missed or used twice, shares that follow the nodes, time near the bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from random import Random
from types import MappingProxyType

import numpy as np
import pytest

from locality.training.generations import MemberRules
from locality.training.played_nodes import PlayedNode, PlayedRun
from locality.training.sample_order import SampleOrder
from locality.training.simulator import Outcome, Sharing, StepDone, simulate
from locality.types import PlanError

RULES = MemberRules(least=1, most=8, gather_seconds=5.0, suspect_seconds=0.5, stop_seconds=60.0)
SPEEDS = {"a": 1507.0, "b": 1558.0, "c": 2133.0, "d": 4479.0}
"""Three members on one CPU and one on the other, as measured."""
FIXED_SECONDS = 0.0127
BATCH = 1024


def play_run(
    changed: Mapping[str, PlayedNode] = MappingProxyType({}), noise: float = 0.04, seed: int = 0, epochs: int = 1
) -> PlayedRun:
    nodes = {name: PlayedNode(speed, FIXED_SECONDS, noise=noise) for name, speed in SPEEDS.items()}
    order = SampleOrder(61_440 // 2 + 100, BATCH, seed)
    return PlayedRun(nodes | dict(changed), order, epochs, comm_seconds=0.005, seed=seed)


def node(speed: float, noise: float = 0.04, *changes: tuple[float, float]) -> PlayedNode:
    return PlayedNode(speed, FIXED_SECONDS, changes, noise=noise)


def step_total(outcome: Outcome) -> float:
    return sum(step.seconds for step in outcome.steps)


def ratio(steps: list[StepDone]) -> float:
    """To the bound N / sum(v_i) + K * fixed cost."""
    return sum(step.seconds for step in steps) / sum(step.bound_seconds for step in steps)


def assert_exact(outcome: Outcome, run: PlayedRun) -> None:
    """Every step once, in order, over the samples of the order, whoever computed them."""
    for state in outcome.states.values():
        assert [step.step for step in state] == list(range(run.steps))
    for epoch in range(run.epochs):
        assert (outcome.count_uses(epoch, run) == 1).all()
    for step in outcome.steps:
        used = np.concatenate(list(step.assigned.values()))
        assert sorted(used) == sorted(run.order.of_step(*run.order.locate(step.step)))


@pytest.mark.parametrize("seed", range(14))
def test_no_sample_is_missed_or_used_twice_whatever_happens_to_nodes(seed: int) -> None:
    draw = Random(seed)
    names = [f"n{number}" for number in range(draw.randint(2, 6))]
    nodes = {
        name: PlayedNode(
            draw.lognormvariate(7, 0.7),
            draw.uniform(0, 0.02),
            tuple((draw.uniform(0, 20), draw.uniform(0.1, 3)) for _ in range(draw.randint(0, 2))),
            up_at=draw.choice([0.0, 0.0, draw.uniform(0, 15)]),
            lost_at=draw.uniform(5, 15),
            noise=0.1,
        )
        for name in names
    }
    nodes["n0"] = replace(nodes["n0"], lost_at=float("inf"), up_at=0.0)
    run = PlayedRun(nodes, SampleOrder(draw.randint(3000, 9000), draw.randint(100, 999), seed), 3, 0.005, seed=seed)

    outcome = simulate(run, draw.choice(list(Sharing)), RULES)

    assert_exact(outcome, run)


def test_steps_fail_and_survivors_are_a_step_apart_in_these_runs() -> None:
    """Otherwise the test above would say little."""
    runs = [replace(play_run({"d": replace(node(4479), lost_at=5.6 + at / 30)}), comm_seconds=0.1) for at in range(9)]
    lost = [simulate(run, Sharing.ADAPTIVE, RULES) for run in runs]
    again = [outcome.generations[1] for outcome in lost]

    assert [outcome.repeated for outcome in lost] == [1] * len(runs)
    assert all(set(generation.members) == {"a", "b", "c"} for generation in again)
    assert {generation.behind for generation in again} == {(), ("b",)}


def test_uneven_nodes_are_used_to_within_a_tenth_of_the_bound_and_equal_shares_are_not() -> None:
    runs = [play_run(seed=seed) for seed in range(3)]
    adaptive = [simulate(run, Sharing.ADAPTIVE, RULES) for run in runs]
    equal = [simulate(run, Sharing.EQUAL, RULES) for run in runs]

    for outcome, run in zip(adaptive, runs, strict=True):
        assert ratio(outcome.steps) <= 1.10
        assert_exact(outcome, run)
    for one, other in zip(equal, adaptive, strict=True):
        assert step_total(one) >= 1.40 * step_total(other)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("factor", [0.25, 4.0])
@pytest.mark.parametrize("at_second", [6.4, 7.31])
def test_shares_fit_within_five_steps_after_a_node_becomes_four_times_slower_or_faster(
    noise: float, factor: float, at_second: float
) -> None:
    for name, speed in SPEEDS.items():
        run = play_run({name: node(speed, noise, (at_second, factor))}, noise)
        steps = simulate(run, Sharing.ADAPTIVE, RULES).steps
        first = next(step.step for step in steps if step.begun >= at_second)
        assert first >= 5
        settled = steps[first + 5 :]
        assert len(settled) >= 5

        assert ratio(settled) <= (1.08 if noise == 0 else 1.2), (name, steps[first + 5].shares())


def test_shares_that_were_fixed_at_first_lose_to_adaptive_ones_when_nodes_change() -> None:
    draw = Random(4)
    nodes = {
        name: node(speed, 0.04, *((6.0 + 6 * at, draw.choice([0.3, 0.6, 1.0])) for at in range(10)))
        for name, speed in SPEEDS.items()
    }
    run = replace(play_run(nodes, epochs=4), thought=SPEEDS)
    fixed, adaptive = (simulate(run, sharing, RULES) for sharing in (Sharing.FIXED, Sharing.ADAPTIVE))

    assert ratio(adaptive.steps) <= 1.2
    assert step_total(fixed) >= 1.25 * step_total(adaptive)


def test_equal_and_steady_nodes_lose_little_to_equal_shares_however_noisy() -> None:
    for noise, worse in ((0.0, 1.0), (0.05, 1.02), (0.15, 1.06)):
        nodes = {name: node(2000, noise) for name in SPEEDS}
        outcome = simulate(play_run(nodes, noise, epochs=2), Sharing.ADAPTIVE, RULES)
        equal = simulate(play_run(nodes, noise, epochs=2), Sharing.EQUAL, RULES)

        assert noise or len(outcome.changes) <= 3
        assert step_total(outcome) <= worse * step_total(equal)


def test_speeds_that_are_known_before_give_the_first_shares() -> None:
    first = simulate(replace(play_run(), thought=SPEEDS), Sharing.ADAPTIVE, RULES).steps[0]

    assert first.shares() == {"a": 159, "b": 165, "c": 226, "d": 474}


def test_a_lost_node_costs_a_pause_of_the_silence_and_one_step_that_is_done_again() -> None:
    run = play_run({"d": replace(node(4479), lost_at=7.0)})
    outcome = simulate(run, Sharing.ADAPTIVE, RULES)
    pauses = [later.begun - earlier.begun - earlier.seconds for earlier, later in pairwise(outcome.steps)]

    assert outcome.repeated == 1
    assert 0.5 < max(pauses) < 1.2
    assert_exact(outcome, run)


def test_a_node_that_is_up_later_joins_when_enough_is_left_and_not_for_the_last_step() -> None:
    early = simulate(play_run({"e": replace(node(4000), up_at=6.0)}), Sharing.ADAPTIVE, RULES)
    ends = simulate(play_run(), Sharing.ADAPTIVE, RULES).steps[-1].begun
    late = simulate(play_run({"e": replace(node(4000), up_at=ends)}), Sharing.ADAPTIVE, RULES)

    assert [len(generation.members) for generation in early.generations] == [4, 5]
    assert early.steps[-2].shares()["e"] > 150
    assert [len(generation.members) for generation in late.generations] == [4]


def test_a_run_whose_nodes_are_all_lost_ends_with_what_is_missing() -> None:
    lost = {name: replace(node(speed), lost_at=6.0) for name, speed in SPEEDS.items()}
    with pytest.raises(PlanError, match="there are too few members to go on"):
        simulate(play_run(lost), Sharing.ADAPTIVE, RULES)


def test_the_same_seed_gives_the_same_run() -> None:
    one, other = (simulate(play_run(seed=3), Sharing.ADAPTIVE, RULES) for _ in range(2))

    assert (one.seconds, one.changes, one.events) == (other.seconds, other.changes, other.events)
