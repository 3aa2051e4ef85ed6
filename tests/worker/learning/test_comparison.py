"""Members that do not have the same parameters are found, and no state of theirs is stored."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from learning.errors import LearningError
from learning.learners import Learner
from learning.member.comparison import Differences, find_differences, mark
from learning.member.rounds import Rounds
from learning.member.run import Run
from learning.member.step_vector import StepVector
from learning.state.checkpoints import Checkpoints, steps_of
from tests.worker.learning.test_rounds import flat, lead, played

EXACT = 1e-10


def found(*parameters: torch.Tensor) -> Differences:
    return find_differences(torch.stack([mark(one) for one in parameters]))


def parameters() -> torch.Tensor:
    return torch.randn(200_001, generator=torch.Generator().manual_seed(3))


def test_equal_parameters_do_not_differ() -> None:
    assert found(parameters(), parameters(), parameters()) == Differences()


@pytest.mark.parametrize("place", [0, 70_000, 200_000])
def test_one_number_that_is_wrong_names_its_member(place: int) -> None:
    broken = parameters()
    broken[place] += 1.0

    assert found(parameters(), parameters(), broken) == Differences(wrong=(2,))
    assert found(broken, parameters(), parameters()) == Differences(wrong=(0,))
    assert found(parameters(), broken) == Differences(wrong=(1,))


def test_numbers_in_another_order_are_wrong() -> None:
    assert found(parameters(), parameters().flip(0)) == Differences(wrong=(1,))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_not_finite_on_one_member_is_wrong(wrong: float) -> None:
    broken = parameters()
    broken[5] = wrong

    assert found(parameters(), broken) == Differences(wrong=(1,))


def test_rounding_is_no_fault() -> None:
    noise = torch.randn(200_001, generator=torch.Generator().manual_seed(4)) * 1e-6

    assert found(parameters(), parameters() + noise, parameters()) == Differences(rounded=(1,))


def break_parameter(learner: Learner) -> None:
    parameters, others = learner.values()
    parameters[3] += 1.0
    learner.set_values(parameters, others)


class Changing:
    """Changes a parameter of one member at a step: whoever computes first, as others may have no samples then."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._once = threading.Semaphore(1)
        self.victim = ""

    def __call__(self, name: str, run: Run) -> None:
        if run.steps == self._step and self._once.acquire(blocking=False):
            self.victim = name
            break_parameter(run._learner)


def test_a_member_whose_parameters_are_changed_is_named_and_the_run_goes_on_from_a_state_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = played("every")
    whole.play(lead([]))

    change = Changing(9)
    run = played("every", on_batch=change)
    with pytest.raises(LearningError, match="are not those of the other members: let nothing but") as raised:
        run.play(lead([]), lambda: Checkpoints(tmp_path))
    assert f"the parameters of {change.victim} are not" in str(raised.value)
    assert len(run.errors) == 3
    for one in threading.enumerate():
        if one.name == "checkpoint":
            one.join()
    stored = max(steps_of(one.name) or 0 for one in tmp_path.iterdir())
    assert 0 < stored <= 9

    again = played("every")
    again.play(lead([], 2, stored), lambda: Checkpoints(tmp_path))

    assert min(again.starts()) == stored
    for model in again.found.values():
        assert (flat(model) - flat(whole.found["a"])).abs().max() < EXACT
    assert "rounding" not in capsys.readouterr().out


def test_a_member_that_is_changed_after_a_round_is_named_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, end = threading.Semaphore(1), Rounds.end

    def end_badly(rounds: Rounds, vector: StepVector) -> None:
        end(rounds, vector)
        if first.acquire(blocking=False):
            break_parameter(rounds._learner)

    monkeypatch.setattr(Rounds, "end", end_badly)
    run = played("local:5")

    with pytest.raises(LearningError, match=r"the parameters of [abc] are not those of the other members"):
        run.play(lead([]), lambda: Checkpoints(tmp_path))
    assert not list(tmp_path.glob("*.state"))


def test_the_last_state_is_compared_even_if_none_was_due() -> None:
    run = played("every", on_batch=Changing(35))

    with pytest.raises(LearningError, match=r"after step 36 the parameters of [abc] are not those"):
        run.play(lead([]))
