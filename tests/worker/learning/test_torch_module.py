"""The learner of PyTorch: parts of a batch add up to the gradient of the whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from learning.errors import LearningError
from learning.learners.torch_module import TorchModule


def parts() -> tuple[torch.nn.Module, TorchModule, torch.Tensor]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
    return model, TorchModule(model, torch.optim.SGD(model.parameters(), lr=0.1)), torch.randn(10, 3).double()


def mean_square(model: torch.nn.Module, x: torch.Tensor) -> Callable[[], torch.Tensor]:
    def loss() -> torch.Tensor:
        found: torch.Tensor = model(x).pow(2).mean()
        return found

    return loss


def test_weighted_gradients_of_parts_are_that_of_the_whole() -> None:
    model, learner, x = parts()
    whole, summed = torch.zeros(learner.size).double(), torch.zeros(learner.size).double()

    loss = learner.gradient(mean_square(model, x), 1.0, whole)
    of_parts = [learner.gradient(mean_square(model, part), len(part) / 10, summed) for part in (x[:3], x[3:4], x[4:])]

    assert torch.allclose(whole, summed, atol=1e-15)
    assert loss == pytest.approx(0.3 * of_parts[0] + 0.1 * of_parts[1] + 0.6 * of_parts[2])


def test_a_step_is_that_of_the_optimizer() -> None:
    model, learner, _ = parts()
    before = torch.cat([one.detach().reshape(-1) for one in model.parameters()])
    gradient = torch.arange(float(learner.size)).double()

    learner.apply(gradient)

    after = torch.cat([one.detach().reshape(-1) for one in model.parameters()])
    assert torch.allclose(after, before - 0.1 * gradient)


def test_what_a_loss_does_not_use_has_no_gradient() -> None:
    model, learner, x = parts()
    into = torch.zeros(learner.size).double()

    learner.gradient(lambda: model[0](x).sum(), 1.0, into)

    assert into[-5:].tolist() == [0.0] * 5
    assert into[:-5].abs().sum() > 0


def test_a_state_of_another_model_is_refused() -> None:
    _, learner, _ = parts()
    other = torch.nn.Linear(2, 2)
    state = TorchModule(other, torch.optim.SGD(other.parameters(), lr=0.1)).state()

    with pytest.raises(LearningError, match="a state does not fit this model and optimizer"):
        learner.load(state)


def test_a_model_without_parameters_to_train_is_refused() -> None:
    model = torch.nn.Linear(1, 1).requires_grad_(requires_grad=False)

    with pytest.raises(LearningError, match="no parameters to train"):
        TorchModule(model, torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1))


def test_a_long_gradient_is_scaled_to_the_longest_allowed() -> None:
    model = torch.nn.Linear(3, 1, bias=False)
    learner = TorchModule(model, torch.optim.SGD(model.parameters(), lr=1.0), clip_norm=5.0)
    before = model.weight.detach().clone()

    learner.apply(torch.tensor([0.0, 30.0, 40.0]))

    assert torch.allclose(before - model.weight.detach(), torch.tensor([[0.0, 3.0, 4.0]]))


def others() -> dict[str, tuple[Callable[[torch.nn.Module], object], str]]:
    def plateau(model: torch.nn.Module) -> object:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return TorchModule(model, optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))

    def imaginary(model: torch.nn.Module) -> object:
        return TorchModule(model.to(torch.cfloat), torch.optim.SGD(model.parameters(), lr=0.1))

    def own(model: torch.nn.Module) -> object:
        head = torch.nn.Linear(1, 1)
        return TorchModule(model, torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1))

    def scheduled(model: torch.nn.Module) -> object:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        return TorchModule(model, optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=9))

    return {
        "complex": (imaginary, "the model has complex parameters: give real and imaginary parts of their own"),
        "LBFGS": (lambda model: TorchModule(model, torch.optim.LBFGS(model.parameters())), "LBFGS asks for more than"),
        "ReduceLROnPlateau": (plateau, "ReduceLROnPlateau asks for more than a gradient: take another one"),
        "parameters of another module": (own, "the optimizer has parameters that are not the model's"),
        "OneCycleLR": (scheduled, "a state that cannot be stored: a .* cannot be a part of a state"),
    }


@pytest.mark.parametrize(("make", "said"), others().values(), ids=others())
def test_what_members_cannot_keep_equal_is_refused(make: Callable[[torch.nn.Module], object], said: str) -> None:
    with pytest.raises(LearningError, match=said):
        make(torch.nn.Linear(2, 2))
