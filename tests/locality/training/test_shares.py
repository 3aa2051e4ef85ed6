"""Shares: no division of whole samples ends sooner, by OR-tools and by dynamic programming; changes that pay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from locality.training import shares
from locality.training.share_changes import Shares, best_shares, reconsider
from locality.training.shares import StepTime, divide, shrink, step_seconds
from locality.training.step_model import Line, Reading, StepModel
from locality.types import PlanError

Table = Sequence[int]
"""Times of steps of 1, 2, ... samples; its length is the most that the member can compute."""


def draw_tables(draw: Random, members: int, most: int) -> dict[str, Table]:
    """Straight lines, steps, jumps and flat parts; all monotone, in whole units."""
    tables: dict[str, Table] = {}
    for number in range(members):
        start, kind = draw.randint(0, 30), draw.choice(["line", "jumps", "flat"])
        slope = draw.randint(0, 9)
        rises = {
            "line": [slope] * most,
            "jumps": [draw.choice([0, 0, 1, 40]) for _ in range(most)],
            "flat": [0] * most,
        }[kind]
        tables[f"m{number}"] = list(accumulate(rises[: draw.randint(0, most)], initial=start))[1:]
    return tables


def as_times(tables: dict[str, Table]) -> tuple[dict[str, StepTime], dict[str, int]]:
    times: dict[str, StepTime] = {}
    for member, table in tables.items():
        times[member] = lambda samples, table=table: float(table[samples - 1])  # type: ignore[misc]
    return times, {member: len(table) for member, table in tables.items()}


def fewest_seconds(tables: dict[str, Table], batch: int) -> int | None:
    """T by dynamic programming over members; None if there is no room."""
    best: list[float] = [0] + [math.inf] * batch
    for table in tables.values():
        best = [
            min(max(best[all_ - mine], table[mine - 1] if mine else 0) for mine in range(min(all_, len(table)) + 1))
            for all_ in range(batch + 1)
        ]
    return None if math.isinf(best[batch]) else int(best[batch])


def fewest_seconds_by_ortools(tables: dict[str, Table], batch: int) -> int | None:
    """T by CP-SAT: each member has one of its possible shares."""
    model = cp_model.CpModel()
    latest = model.new_int_var(0, 10**6, "T")
    given_samples = []
    for table in tables.values():
        chosen = [model.new_bool_var("") for _ in range(len(table) + 1)]
        model.add_exactly_one(chosen)
        model.add(latest >= sum(seconds * one for seconds, one in zip([0, *table], chosen, strict=True)))
        given_samples += [count * one for count, one in enumerate(chosen)]
    model.add(sum(given_samples) == batch)
    model.minimize(latest)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.cp_model_presolve = False
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    return int(solver.objective_value) if status == cp_model.OPTIMAL else None


def assert_best(tables: dict[str, Table], batch: int, expected: int | None) -> None:
    times, most = as_times(tables)
    if expected is None:
        with pytest.raises(PlanError, match="does not fit"):
            divide(batch, times, most)
        return
    found = divide(batch, times, most)
    assert sum(found.values()) == batch
    assert all(0 <= found[member] <= most[member] for member in tables)
    assert step_seconds(found, times) == expected, (tables, batch)


def test_no_division_ends_sooner_by_ortools() -> None:
    draw = Random(21)
    for _ in range(2000):
        tables, batch = draw_tables(draw, draw.randint(1, 4), 6), draw.randint(0, 12)
        assert_best(tables, batch, fewest_seconds_by_ortools(tables, batch))


@pytest.mark.parametrize("by_one", [0, 1, 4])
def test_no_division_ends_sooner_by_dynamic_programming(by_one: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where large batches are given at once."""
    monkeypatch.setattr(shares, "_BY_ONE", by_one)
    draw = Random(by_one)
    for _ in range(1500):
        tables, batch = draw_tables(draw, draw.randint(1, 6), 12), draw.randint(0, 30)
        assert_best(tables, batch, fewest_seconds(tables, batch))


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(1e-6, 10)), min_size=1, max_size=8),
    st.integers(0, 100_000),
)
def test_no_sample_would_end_sooner_elsewhere(lines: list[tuple[float, float]], batch: int) -> None:
    times: dict[str, StepTime] = {f"m{number}": Line(*line).seconds for number, line in enumerate(lines)}
    found = divide(batch, times, dict.fromkeys(times, batch))

    assert sum(found.values()) == batch
    last = step_seconds(found, times)
    assert all(times[member](share + 1) >= last for member, share in found.items())


def test_a_member_whose_fixed_part_is_longer_than_the_step_stands_by() -> None:
    times: dict[str, StepTime] = {"near": Line(0.0, 1.0).seconds, "far": Line(50.0, 0.001).seconds}

    assert divide(40, times, dict.fromkeys(times, 1000)) == {"near": 40, "far": 0}
    assert divide(100, times, dict.fromkeys(times, 1000)) == {"near": 50, "far": 50}


def test_equal_members_get_equal_shares_in_the_order_of_names() -> None:
    times: dict[str, StepTime] = dict.fromkeys("cab", lambda samples: float(samples))

    assert divide(8, times, dict.fromkeys("abc", 8)) == {"a": 3, "b": 3, "c": 2}


def test_members_that_take_no_time_for_more_samples_share_them() -> None:
    times: dict[str, StepTime] = dict.fromkeys("ab", lambda samples: 1.0)

    assert divide(10, times, dict.fromkeys("ab", 100)) == {"a": 5, "b": 5}


def test_what_cannot_be_divided_is_named() -> None:
    time: dict[str, StepTime] = {"a": lambda samples: 1.0}
    with pytest.raises(PlanError, match="a batch of 9 samples does not fit: all members compute at most 8 together"):
        divide(9, time, {"a": 8})
    with pytest.raises(PlanError, match="a batch of 1 samples does not fit"):
        divide(1, {}, {})
    with pytest.raises(PlanError, match="a batch of -1 samples"):
        divide(-1, time, {"a": 8})
    with pytest.raises(PlanError, match="member a cannot compute at most -8"):
        divide(1, time, {"a": -8})
    with pytest.raises(PlanError, match="would take nan seconds"):
        divide(1, {"a": lambda samples: math.nan}, {"a": 8})


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 300), min_size=1), st.data())
def test_a_short_batch_has_shares_in_the_same_ratios(usual: dict[str, int], data: st.DataObject) -> None:
    total = sum(usual.values())
    batch = data.draw(st.integers(0, total))
    short = shrink(usual, batch)

    assert sum(short.values()) == batch
    assert all(0 <= short[member] <= share for member, share in usual.items())
    assert all(abs(short[member] - share * batch / max(total, 1)) < 1 for member, share in usual.items())


def test_a_batch_larger_than_the_shares_is_not_short() -> None:
    with pytest.raises(PlanError, match="9 samples are no part of a batch of 8"):
        shrink({"a": 8}, 9)


def model(samples: int, seconds: float, noise: float = 0.0) -> StepModel:
    line = Line(0.0, seconds / samples)
    return StepModel(line, noise, (Reading(samples, seconds),))


MOST = {"a": 1000, "b": 1000}


def test_shares_change_when_it_pays_and_not_for_less_than_three_percent() -> None:
    now = Shares(0, {"a": 100, "b": 100})
    little = {"a": model(100, 1.0), "b": model(100, 1.05)}
    much = {"a": model(100, 1.0), "b": model(100, 1.2)}

    assert reconsider(now, 50, little, MOST) is now
    better = reconsider(now, 50, much, MOST)
    assert (better.first_step, better.samples) == (50, {"a": 109, "b": 91})
    assert better.gain == pytest.approx(120 / (91 * 1.2))


def test_what_the_noise_of_the_last_member_would_promise_is_no_reason() -> None:
    now = Shares(0, {"a": 100, "b": 100})

    assert reconsider(now, 50, {"a": model(100, 1.0), "b": model(100, 1.2, noise=0.05)}, MOST) is now
    assert reconsider(now, 50, {"a": model(100, 1.0, noise=0.05), "b": model(100, 1.2)}, MOST).first_step == 50


def test_shares_stay_for_five_steps_but_a_guess_for_one() -> None:
    models = {name: seen(4, 100, seconds) for name, seconds in {"a": 1.0, "b": 4.0}.items()}
    equal = {"a": 100, "b": 100}

    assert [reconsider(Shares(10, equal), step, models, MOST).first_step for step in (14, 15)] == [10, 15]
    assert [reconsider(Shares(10, equal, True), step, models, MOST).first_step for step in (10, 11)] == [10, 11]


def test_bounded_shares_and_nodes_that_have_just_changed_need_not_wait() -> None:
    equal, known = {"a": 100, "b": 100}, seen(4, 100, 4.0)

    bounded = Shares(10, equal, is_bounded=True)
    assert reconsider(bounded, 11, {"a": seen(4, 100, 1.0), "b": known}, MOST).first_step == 11
    assert reconsider(Shares(10, equal), 11, {"a": seen(2, 100, 1.0), "b": known}, MOST).first_step == 11


def test_the_more_readings_count_the_smaller_a_gain_is_enough() -> None:
    now = Shares(0, {"a": 100, "b": 100})
    few, many = (
        {"a": replace(seen(count, 100, 1.0), noise=0.1), "b": replace(seen(count, 100, 1.15), noise=0.1)}
        for count in (4, 16)
    )

    assert reconsider(now, 50, few, MOST) is now
    assert reconsider(now, 50, many, MOST).first_step == 50


def seen(count: int, samples: int, seconds: float) -> StepModel:
    """Of so many equal steps."""
    found = StepModel.guess(samples / seconds)
    for _ in range(count):
        found = found.see(samples, seconds)
    return found


def test_shares_are_a_guess_while_one_that_takes_part_made_no_step() -> None:
    known, new, slow = model(100, 1.0), StepModel.guess(100.0), StepModel.guess(1e-9)

    assert best_shares(0, 200, {"a": known, "b": new}, MOST).is_guess
    assert not best_shares(0, 200, {"a": known, "b": slow}, MOST).is_guess
    assert not best_shares(0, 200, {"a": known, "b": known}, MOST).is_guess


def test_a_share_grows_to_twice_what_was_seen_at_most_where_others_have_room() -> None:
    models = {"a": model(100, 0.1), "b": model(300, 3.0)}

    assert best_shares(0, 400, models, MOST).samples == {"a": 200, "b": 200}
    assert best_shares(0, 900, models, MOST).samples == {"a": 819, "b": 81}


def test_what_memory_holds_is_kept_to() -> None:
    models = {"a": model(100, 0.1), "b": model(300, 3.0)}

    assert best_shares(0, 400, models, {"a": 150, "b": 1000}).samples == {"a": 150, "b": 250}
