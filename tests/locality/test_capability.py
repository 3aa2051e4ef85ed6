"""What a node can do by its past jobs: against numpy, as properties, and on absurd rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locality.capability import (
    ALPHA,
    GUESS_CONFIDENCE,
    HALF_LIFE_SECONDS,
    SPREAD_RATIO,
    Estimate,
    Sample,
    freshness,
    from_jobs,
    from_others,
)

DAY = 86_400.0
AGES = st.integers(0, 90 * 86_400).map(float)  # whole seconds, so that sums of them keep their order
SPEEDS = st.floats(0.01, 10_000)
JOBS = st.lists(st.builds(Sample, AGES, SPEEDS), min_size=1, max_size=20)
ONE_JOB_NOW = GUESS_CONFIDENCE + (1 - GUESS_CONFIDENCE) / 2


def estimate(samples: Sequence[Sample]) -> Estimate:
    found = from_jobs(samples)
    assert found is not None
    return found


def jobs(*rows: tuple[float, float]) -> list[Sample]:
    return [Sample(days * DAY, speed) for days, speed in rows]


def assert_close(found: Estimate | None, expected: Estimate) -> None:
    assert found is not None
    assert (found.count, found.spread is None) == (expected.count, expected.spread is None)
    assert (found.value, found.confidence) == pytest.approx((expected.value, expected.confidence), rel=1e-9)
    assert (found.spread or 0.0) == pytest.approx(expected.spread or 0.0, rel=1e-6, abs=1e-6 * expected.value)


def by_numpy(samples: Sequence[Sample]) -> Estimate:
    """The formula of the module, written a second time."""
    ages, speeds = np.array(sorted(samples, key=lambda job: job.age_seconds), dtype=float).T
    weights = (1 - ALPHA) ** np.arange(len(ages)) * np.exp2(-ages / HALF_LIFE_SECONDS)
    value = np.average(speeds, weights=weights)
    spread = np.sqrt(np.average((speeds - value) ** 2, weights=weights))
    credibility = weights.sum() / (weights.sum() + 1 + (spread / (SPREAD_RATIO * value)) ** 2)
    confidence = GUESS_CONFIDENCE + (1 - GUESS_CONFIDENCE) * credibility
    return Estimate(float(value), float(confidence), len(ages), float(spread) if len(ages) > 1 else None)


@given(JOBS)
def test_the_estimate_is_what_numpy_makes_of_the_formula(samples: list[Sample]) -> None:
    assert_close(from_jobs(samples), by_numpy(samples))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # One job now: half of all evidence, so halfway between a guess and certainty.
        ([(0, 20)], Estimate(20, ONE_JOB_NOW, 1)),
        # A half-life later it is half a job: Z = 0.5 / 1.5.
        ([(7, 20)], Estimate(20, 0.1 + 0.9 / 3, 1)),
        # Equal jobs of now: w = 1, 0.7, and Z = 1.7 / 2.7.
        ([(0, 20), (0, 20)], Estimate(20, 0.1 + 0.9 * 1.7 / 2.7, 2, 0.0)),
        # 20 now and 3 a half-life ago: w = 1, 0.35; s = (20 - 3) * sqrt(0.35) / 1.35.
        (
            [(0, 20), (7, 3)],
            Estimate(
                (20 + 0.35 * 3) / 1.35,
                0.1 + 0.9 * 1.35 / (2.35 + (17 * math.sqrt(0.35) / (20 + 0.35 * 3) / 0.2) ** 2),
                2,
                17 * math.sqrt(0.35) / 1.35,
            ),
        ),
    ],
)
def test_an_estimate_worked_out_by_hand(rows: list[tuple[float, float]], expected: Estimate) -> None:
    assert_close(from_jobs(jobs(*rows)), expected)


def test_a_node_without_jobs_has_no_estimate() -> None:
    assert from_jobs([]) is None


@given(JOBS)
def test_the_value_lies_between_the_slowest_and_the_quickest_job(samples: list[Sample]) -> None:
    speeds = [job.items_per_second for job in samples]

    assert min(speeds) * (1 - 1e-12) <= estimate(samples).value <= max(speeds) * (1 + 1e-12)


@given(JOBS, st.randoms())
def test_the_order_in_which_jobs_are_told_says_nothing(samples: list[Sample], chance: object) -> None:
    distinct = list({job.age_seconds: job for job in samples}.values())
    shuffled = sorted(distinct, key=lambda _: chance.random())  # type: ignore[attr-defined]

    assert from_jobs(shuffled) == from_jobs(distinct)


@given(st.lists(AGES, min_size=2, max_size=10, unique=True), st.data())
def test_a_newer_job_counts_more(ages: list[float], data: st.DataObject) -> None:
    newer, older = sorted(data.draw(st.lists(st.sampled_from(range(len(ages))), min_size=2, max_size=2, unique=True)))
    ages.sort()

    def with_a_quick_one(place: int) -> float:
        return estimate([Sample(age, 20 if rank == place else 10) for rank, age in enumerate(ages)]).value

    assert with_a_quick_one(newer) > with_a_quick_one(older)


@given(JOBS, st.integers(3600, 60 * 86_400))
def test_time_that_passes_leaves_the_value_and_takes_confidence(samples: list[Sample], seconds: int) -> None:
    now, later = estimate(samples), estimate([Sample(age + seconds, speed) for age, speed in samples])

    assert later.value == pytest.approx(now.value)
    assert GUESS_CONFIDENCE < later.confidence < now.confidence


@given(st.integers(1, 40), SPEEDS, AGES)
def test_another_job_of_the_same_speed_gives_confidence(count: int, speed: float, age: float) -> None:
    fewer, more = (estimate([Sample(age, speed)] * jobs) for jobs in (count, count + 1))

    assert more.confidence > fewer.confidence
    assert more.count == fewer.count + 1


@given(st.lists(st.builds(Sample, AGES, st.floats(1, 100)), min_size=2, max_size=20), st.floats(0.1, 0.9))
def test_speeds_that_differ_less_give_confidence(samples: list[Sample], share: float) -> None:
    wide = estimate(samples)
    narrow = estimate([Sample(age, wide.value + share * (speed - wide.value)) for age, speed in samples])

    assert wide.spread is not None
    assert narrow.value == pytest.approx(wide.value)
    assert narrow.spread == pytest.approx(share * wide.spread, rel=1e-6, abs=1e-9)
    assert narrow.confidence >= wide.confidence - 1e-12
    if wide.spread > 0.01 * wide.value:
        assert narrow.confidence > wide.confidence


@given(JOBS, st.floats(0.001, 1000))
def test_another_unit_is_another_number_and_the_same_confidence(samples: list[Sample], factor: float) -> None:
    found, scaled = estimate(samples), estimate([Sample(age, speed * factor) for age, speed in samples])

    assert scaled.value == pytest.approx(found.value * factor)
    assert scaled.confidence == pytest.approx(found.confidence)
    if found.spread is not None:
        assert scaled.spread == pytest.approx(found.spread * factor, rel=1e-6, abs=1e-6 * scaled.value)


@pytest.mark.parametrize("speed", [math.nan, math.inf, -math.inf, 0.0, -0.0, -3.0])
def test_a_speed_that_is_none_is_refused_and_never_counts_as_0(speed: float) -> None:
    with pytest.raises(ValueError, match="is not a speed"):
        from_jobs([Sample(0, 10), Sample(5, speed)])


@pytest.mark.parametrize("age", [math.nan, math.inf, -math.inf])
def test_an_age_that_is_none_is_refused(age: float) -> None:
    with pytest.raises(ValueError, match="age"):
        from_jobs([Sample(age, 10)])


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([Sample(-60, 20)], Estimate(20, ONE_JOB_NOW, 1)),
        ([Sample(-1e300, 20), Sample(-5, 20)], Estimate(20, 0.1 + 0.9 * 1.7 / 2.7, 2, 0.0)),
        ([Sample(1e300, 20)], Estimate(20, 0.1, 1)),
        ([Sample(1e12, 20), Sample(1e300, 7)], Estimate(20, 0.1, 2, 0.0)),
        ([Sample(0, 1e308), Sample(0, 1e308)], Estimate(1e308, 0.1 + 0.9 * 1.7 / 2.7, 2, 0.0)),
        ([Sample(0, 5e-324)], Estimate(5e-324, ONE_JOB_NOW, 1)),
        ([Sample(0, 1e-300), Sample(60 * HALF_LIFE_SECONDS, 1e300)], Estimate(1e-300, ONE_JOB_NOW, 2, 0.0)),
        ([Sample(0, 1e-300), Sample(40 * HALF_LIFE_SECONDS, 1e300)], None),
    ],
    ids=[
        "future",
        "all in the future",
        "forgotten",
        "all forgotten",
        "huge",
        "tiny",
        "huge but lost beside tiny",
        "huge beside tiny",
    ],
)
def test_absurd_jobs_give_finite_numbers(samples: list[Sample], expected: Estimate | None) -> None:
    found = estimate(samples)

    assert all(math.isfinite(number) for number in (found.value, found.spread or 0.0, found.confidence))
    assert 0 < found.confidence < 1
    if expected is not None:
        assert_close(found, expected)


def test_a_guess_is_the_node_s_measure_on_the_scale_of_the_others() -> None:
    known = [(20.0, 1.0), (10.0, 0.25), (6.0, 0.5)]  # 20, 40 and 12 for each unit of the measure

    assert_close(from_others(0.5, known), Estimate(10.0, 0.075))
    assert_close(from_others(0.5, known[:2]), Estimate(15.0, 0.2 / 3))


def test_a_node_that_can_do_nothing_by_its_measure_is_guessed_so() -> None:
    assert_close(from_others(0.0, [(20.0, 1.0)]), Estimate(0.0, 0.05))


@pytest.mark.parametrize(
    "known", [[], [(20.0, 0.0)], [(0.0, 1.0)], [(-5.0, 1.0)], [(math.nan, 1.0)], [(math.inf, 1.0)], [(5.0, math.nan)]]
)
def test_where_nobody_gives_a_scale_there_is_no_guess(known: list[tuple[float, float]]) -> None:
    assert from_others(1.0, known) is None
    assert_close(from_others(1.0, [*known, (7.0, 0.5)]), Estimate(14.0, 0.05))


@pytest.mark.parametrize("measure", [math.nan, math.inf, -0.5])
def test_a_measure_that_is_none_is_refused(measure: float) -> None:
    with pytest.raises(ValueError, match="measure"):
        from_others(measure, [(20.0, 1.0)])


@given(JOBS, st.lists(st.tuples(SPEEDS, SPEEDS), min_size=1, max_size=200), SPEEDS)
def test_no_guess_is_trusted_as_much_as_any_speed_that_was_seen(
    samples: list[Sample], known: list[tuple[float, float]], measure: float
) -> None:
    guess = from_others(measure, known)

    assert guess is not None
    assert 0 < guess.confidence < GUESS_CONFIDENCE < estimate(samples).confidence < 1


@given(st.lists(st.tuples(SPEEDS, SPEEDS), min_size=1, max_size=20), SPEEDS, st.floats(0.01, 100))
def test_a_guess_scales_with_speeds_and_does_not_depend_on_the_unit_of_the_measure(
    known: list[tuple[float, float]], measure: float, factor: float
) -> None:
    guess = from_others(measure, known)

    assert guess is not None
    assert_close(
        from_others(measure, [(speed * factor, other) for speed, other in known]),
        replace(guess, value=guess.value * factor),
    )
    assert_close(from_others(measure * factor, [(speed, other * factor) for speed, other in known]), guess)


@pytest.mark.parametrize(
    ("age", "ttl", "expected"), [(0, 15, 1), (7.5, 15, 0.5), (15, 15, 0), (100, 15, 0), (-3, 15, 1)]
)
def test_what_was_measured_once_is_trusted_until_it_is_stale(age: float, ttl: float, expected: float) -> None:
    assert freshness(age, ttl) == expected
