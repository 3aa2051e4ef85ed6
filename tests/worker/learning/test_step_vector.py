"""What members add up in a step tells each the same of all."""

from __future__ import annotations

import pytest
import torch

from learning.member.step_vector import Heard, StepVector


def added_up(*vectors: StepVector) -> Heard:
    """As gloo does it."""
    total = torch.stack([one.data for one in vectors]).sum(0)
    vectors[0].data.copy_(total)
    return vectors[0].read()


def member(rank: int, of: int = 2, dtype: torch.dtype = torch.float32) -> StepVector:
    return StepVector(3, rank, of, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_are_weighted_and_times_are_each_members_own(dtype: torch.dtype) -> None:
    first, second = member(0, dtype=dtype), member(1, dtype=dtype)
    first.add(loss=2.0, weight=0.25, seconds=0.5)
    first.add(loss=4.0, weight=0.25, seconds=0.25)
    second.add(loss=1.0, weight=0.5, seconds=2.0)
    first.gradient += 1.0
    for one in (first, second):
        one.close("7 shares", is_last=False)

    heard = added_up(first, second)

    assert heard == Heard(loss=2.0, is_last=False, seconds=(0.75, 2.0), faulty=(), agree=True, is_finite=True)
    assert first.gradient.tolist() == [1.0] * 3


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_names_its_member_and_spoils_nothing(wrong: float) -> None:
    first, second = member(0), member(1)
    second.gradient[1] = wrong
    for one in (first, second):
        one.close("", is_last=False)

    heard = added_up(first, second)

    assert heard.faulty == (1,)
    assert heard.is_finite


def test_finite_parts_may_have_a_sum_that_is_not() -> None:
    first, second = member(0), member(1)
    for one in (first, second):
        one.gradient += 3e38
        one.close("", is_last=False)

    assert not added_up(first, second).is_finite


def test_members_that_do_not_agree_notice_it_and_one_that_ends_is_heard() -> None:
    first, second = member(0), member(1)
    first.close("{'a': 5, 'b': 3}", is_last=True)
    second.close("{'a': 4, 'b': 4}", is_last=False)

    heard = added_up(first, second)

    assert not heard.agree
    assert heard.is_last and not heard.is_stop


@pytest.mark.parametrize("stopping", [(0,), (1,), (0, 1)])
def test_one_that_stops_the_run_is_heard(stopping: tuple[int, ...]) -> None:
    members = member(0), member(1)
    for rank, one in enumerate(members):
        one.close("", is_last=False, is_stop=rank in stopping)

    heard = added_up(*members)

    assert heard.is_stop and not heard.is_last
