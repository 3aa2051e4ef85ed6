"""What is learned from the steps of a member: the line, its noise, and when the past counts no more."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from locality.training import micro_batches
from locality.training.first_guess import first_models
from locality.training.step_model import AGEING, WINDOW, Line, Reading, StepModel, fit

times = st.floats(1e-4, 1e3)


def seen(model: StepModel, *readings: tuple[int, float]) -> StepModel:
    for samples, seconds in readings:
        model = model.see(samples, seconds)
    return model


def steady(samples: int = 100, seconds: float = 1.0, count: int = WINDOW) -> StepModel:
    return seen(StepModel.guess(100.0), *[(samples, seconds)] * count)


@given(st.floats(0, 0.5), st.floats(0.01, 1), st.integers(0, 2**32))
def test_the_line_is_the_least_squares_one_where_sizes_tell_a_from_c(fixed: float, slope: float, seed: int) -> None:
    """Oracle: scipy's least squares for coefficients of 0 or more (Lawson and Hanson 1974)."""
    draw = Random(seed)
    sizes = [draw.randint(10, 100) for _ in range(14)] + [10, 100]
    readings = [Reading(b, (fixed + slope * b) * draw.uniform(0.98, 1.02)) for b in sizes]
    expected, _ = nnls(np.array([[1.0, b] for b in sizes]), np.array([t for _, t in readings]))

    found = fit(readings, Line(0.0, 1.0))

    assert (found.fixed_seconds, found.sample_seconds) == pytest.approx(tuple(expected), rel=1e-6, abs=1e-9)


def test_a_fixed_part_below_zero_becomes_zero() -> None:
    found = fit([Reading(10, 0.5), Reading(20, 2.0)], Line(0.0, 1.0))

    assert found.fixed_seconds == 0
    assert found.sample_seconds == pytest.approx((10 * 0.5 + 20 * 2.0) / (10**2 + 20**2))


def test_a_slope_below_zero_or_within_the_noise_does_not_make_further_samples_free() -> None:
    falling = [Reading(10, 2.0), Reading(20, 1.0)]
    flat = [Reading(b, t) for b, t in [(100, 1.0), (100, 1.1), (100, 0.9), (130, 1.02), (130, 1.05)]]

    for readings in (falling, flat):
        found = fit(readings, Line(0.5, 0.05))
        assert found.fixed_seconds / found.sample_seconds == pytest.approx(10)


def test_readings_at_one_size_keep_the_ratio_of_fixed_part_and_slope() -> None:
    found = fit([Reading(100, 8.0), Reading(101, 8.0)], Line(1.0, 0.01))

    assert found.fixed_seconds / found.sample_seconds == pytest.approx(100)
    assert found.seconds(100) == pytest.approx(8.0, rel=0.01)


def test_only_the_last_sixteen_readings_count() -> None:
    model = seen(steady(count=30), *[(100, 1.2)] * WINDOW)

    assert len(model.readings) == WINDOW
    assert model.seconds(100) == pytest.approx(1.2)


def test_the_first_reading_gives_the_scale_of_a_guess_that_is_wrong() -> None:
    assert StepModel.guess(1e6).see(50, 2.0).seconds(50) == pytest.approx(2.0)


def test_a_step_without_samples_costs_nothing_and_what_is_known_grows_old() -> None:
    model = steady().see(0, 5.0)

    assert model.seconds(0) == 0.0
    assert model.seconds(100) == pytest.approx(AGEING)
    assert model.see(100, AGEING).seconds(100) == pytest.approx(AGEING)


@pytest.mark.parametrize("factor", [4.0, 0.25])
def test_two_readings_off_to_the_same_side_drop_the_past(factor: float) -> None:
    once = steady().see(100, factor)
    twice = once.see(100, factor)

    assert len(once.readings) == WINDOW
    assert twice.readings == (Reading(100, factor), Reading(100, factor))
    assert twice.seconds(100) == pytest.approx(factor)


@pytest.mark.parametrize("amid", [1.5, 2.5])
def test_a_step_amid_which_a_node_changed_is_no_part_of_its_new_past(amid: float) -> None:
    changed = seen(steady(), (100, amid), (100, 4.0))

    assert changed.readings == (Reading(100, 4.0),)
    assert changed.seconds(100) == pytest.approx(4.0)


def test_a_noisy_node_that_becomes_four_times_as_fast_is_seen() -> None:
    model, draw = StepModel.guess(100.0), Random(1)
    for _ in range(2 * WINDOW):
        model = model.see(100, 1 + draw.choice([-0.3, 0.3]))
    assert model.noise > 0.25

    assert len(seen(model, (100, 0.25), (100, 0.25)).readings) == 2


def test_a_single_hiccup_moves_the_line_by_a_sixteenth_of_a_quarter_at_most() -> None:
    model = seen(steady(), (100, 30.0), (100, 1.0))

    assert 1 < model.seconds(100) < 1 + 0.26 / WINDOW
    assert len(model.readings) == WINDOW


def test_readings_off_to_either_side_are_noise() -> None:
    assert len(seen(steady(), (100, 2.0), (100, 0.5)).readings) == WINDOW


def test_where_readings_are_noisy_four_sigma_count_instead_of_a_quarter() -> None:
    model = StepModel.guess(100.0)
    draw = Random(1)
    for _ in range(3 * WINDOW):
        model = model.see(100, 1 + draw.choice([-0.2, 0.2]) * draw.uniform(0.8, 1))

    assert 0.15 < model.noise < 0.35
    assert len(seen(model, (100, 1.5), (100, 1.5)).readings) == WINDOW
    assert len(seen(model, (100, 3.0), (100, 3.0)).readings) == 2


def test_hiccups_at_every_second_step_are_learned_in_the_end() -> None:
    model = steady()
    for _ in range(60):
        model = seen(model, (100, 3.0), (100, 1.0))

    assert model.seconds(100) == pytest.approx(2.0, rel=0.2)


def test_a_size_unlike_all_seen_is_not_off_but_tells_a_from_c() -> None:
    model = seen(steady(100, 10.0), (200, 11.0), (200, 11.0))

    assert len(model.readings) == WINDOW
    assert model.line.fixed_seconds == pytest.approx(9.0)
    assert model.line.sample_seconds == pytest.approx(0.01)


def test_the_reach_is_twice_the_largest_size_seen() -> None:
    assert StepModel.guess(1.0).reach() is None
    assert steady(100).reach() == 200
    assert steady(1).reach() == 32


@given(st.lists(st.tuples(st.integers(0, 300), times), max_size=60))
def test_whatever_is_seen_the_line_rises_and_nothing_is_negative(readings: list[tuple[int, float]]) -> None:
    model = seen(StepModel.guess(10.0), *readings)

    assert model.line.fixed_seconds >= 0
    assert model.line.sample_seconds > 0
    assert math.isfinite(model.seconds(10**6))
    assert model.noise >= 0
    assert len(model.readings) <= WINDOW


@pytest.mark.parametrize("reading", [(-1, 1.0), (1, 0.0), (1, -1.0), (1, math.nan), (1, math.inf)])
def test_what_is_not_the_time_of_a_step_is_refused(reading: tuple[int, float]) -> None:
    with pytest.raises(ValueError, match="is not the time of a step"):
        steady().see(*reading)


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan, math.inf])
def test_a_guess_needs_a_speed(speed: float) -> None:
    with pytest.raises(ValueError, match="is not a speed"):
        StepModel.guess(speed)


def test_nodes_without_a_speed_are_guessed_on_the_scale_of_the_others() -> None:
    models = first_models("abcd", {"a": 100.0, "b": 10.0}, {"a": 50.0, "b": 5.0, "c": 20.0})

    assert {node: round(1 / model.line.sample_seconds) for node, model in models.items()} == {
        "a": 100, "b": 10, "c": 40, "d": 55,
    }  # fmt: skip


def test_without_any_speed_measures_give_the_ratios_and_without_both_all_nodes_are_equal() -> None:
    by_measures = first_models("ab", {}, {"a": 3.0, "b": 1.0})
    equal = first_models("ab", {}, {})

    assert by_measures["b"].seconds(1) / by_measures["a"].seconds(1) == pytest.approx(3)
    assert equal["a"] == equal["b"]


def test_a_node_whose_measure_is_zero_is_guessed_by_the_middle_of_the_others() -> None:
    assert first_models("ab", {}, {"a": 3.0, "b": 0.0})["b"].seconds(3) == pytest.approx(1.0)


@given(st.integers(0, 5000), st.integers(1, 200))
def test_micro_batches_are_few_and_nearly_equal(samples: int, most: int) -> None:
    sizes = micro_batches.split(samples, most)

    assert sum(sizes) == samples
    assert len(sizes) == math.ceil(samples / most)
    assert not sizes or (max(sizes) <= most and max(sizes) - min(sizes) <= 1)


def test_a_batch_that_does_not_fit_into_memory_is_halved_until_one_sample_is_left() -> None:
    assert micro_batches.halve(3) == 1
    with pytest.raises(ValueError, match="a single sample does not fit"):
        micro_batches.halve(1)
    with pytest.raises(ValueError, match="cannot be divided"):
        micro_batches.split(-1)
