from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.agent.schedule import missed_ticks, next_tick, node_phase

SECONDS = st.floats(0, 1e7)
INTERVALS = st.floats(0.1, 86_400)


@given(now=SECONDS, interval=INTERVALS, share=st.floats(0, 1, exclude_max=True), ticks=st.integers(0, 1000))
def test_the_next_tick_is_always_ahead_and_never_more_than_an_interval(
    now: float, interval: float, share: float, ticks: int
) -> None:
    phase = share * interval
    for moment in (now, phase + interval * ticks):
        tick = next_tick(moment, interval, phase)
        assert moment < tick <= moment + interval * 1.001 + 1e-6
        assert (tick - phase) / interval == pytest.approx(round((tick - phase) / interval), abs=1e-3)


def test_a_tick_that_rounding_brings_back_to_now_is_passed_over() -> None:
    moment = next_tick(0.3, 0.1, 0.0)
    for _ in range(100_000):
        later = next_tick(moment, 0.1, 0.0)
        assert moment < later < moment + 0.11
        moment = later


@pytest.mark.parametrize(("now", "missed"), [(9.0, 0), (10.0, 0), (14.9, 0), (15.0, 1), (31.0, 4)])
def test_ticks_that_passed_are_counted(now: float, missed: int) -> None:
    assert missed_ticks(now, 5.0, 10.0) == missed


def test_the_phase_of_a_node_is_its_own_and_stays() -> None:
    phases = [node_phase(f"worker{number}") for number in range(1000)]

    assert phases == [node_phase(f"worker{number}") for number in range(1000)]
    assert all(0 <= phase < 1 for phase in phases)
    tenths = [sum(tenth <= 10 * phase < tenth + 1 for phase in phases) for tenth in range(10)]
    assert min(tenths) > 50  # spread over the whole interval
