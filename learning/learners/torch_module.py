"""A module of PyTorch with its optimizer, and with the scheduler of its learning rate where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from learning.errors import LearningError
from learning.learners.clipping import clip
from learning.state.plain_state import from_bytes, to_bytes

_OTHER_OPTIMIZERS = (torch.optim.LBFGS,)
_OTHER_SCHEDULERS = (torch.optim.lr_scheduler.ReduceLROnPlateau,)
_RUNNING, _COUNT = "running_", "step"
"""How PyTorch calls running means and variances among buffers, and the count of steps in states of optimizers."""


class TorchModule:
    """A Learner; LearningError for what cannot be trained exactly by several processes.

    The scheduler is stepped once after each global step. `clip_norm` is the longest gradient: a longer one is scaled to
    it. A parameter that the loss does not use has the gradient 0.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        scheduler: Any = None,
        clip_norm: float | None = None,
    ) -> None:
        self._model = model
        self._optimizer = optimizer
        self._scheduler = scheduler
        self._clip_norm = clip_norm
        self._parameters = [one for one in model.parameters() if one.requires_grad]
        self._check()
        self.size = sum(one.numel() for one in self._parameters)
        self.dtype = torch.float64 if any(one.dtype == torch.float64 for one in self._parameters) else torch.float32

    def gradient(self, loss: Callable[[], torch.Tensor], weight: float, into: torch.Tensor) -> float:
        """Add `weight` times the gradient of `loss()` to `into`; the loss as a number."""
        for one in self._parameters:
            one.grad = None
        value = loss()
        value.backward()
        for one, part in _parts(self._parameters, into):
            if one.grad is not None:
                part.add_(one.grad.to(into), alpha=weight)
        return float(value.detach())

    def apply(self, gradient: torch.Tensor) -> None:
        """Make one step of the optimizer, and of the scheduler."""
        for one, part in _parts(self._parameters, clip(gradient, self._clip_norm)):
            one.grad = part.to(one)
        self._optimizer.step()
        if self._scheduler is not None:
            self._scheduler.step()

    def state(self, before: bytes = b"") -> bytes:
        """The states of model, optimizer and scheduler."""
        return to_bytes({name: part.state_dict() for name, part in self._named()}, before)

    def load(self, state: bytes | memoryview) -> None:
        """Continue from a state; LearningError when it is of another model."""
        try:
            loaded = from_bytes(state)
            for name, part in self._named():
                part.load_state_dict(loaded[name])
        except (RuntimeError, KeyError, ValueError, TypeError) as error:
            said = str(error).split("\n", 1)[0]
            raise LearningError(
                f"a state does not fit this model and optimizer: {said}",
                "begin a new run, or build the model as it was when the state was stored",
            ) from error

    def values(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The parameters; moments of the optimizer, and running means and variances of the model's normalisation."""
        with torch.no_grad():
            return self._flat(self._parameters), self._flat(self._others())

    def set_values(self, parameters: torch.Tensor, others: torch.Tensor) -> None:
        """Continue from what `values` gave, or from means of it."""
        with torch.no_grad():
            for given, found in ((self._parameters, parameters), (self._others(), others)):
                for one, part in _parts(given, found):
                    one.copy_(part)

    def counts(self) -> bytes:
        """The buffers of which `values` has nothing, such as `num_batches_tracked`."""
        counts = self._counts()
        return to_bytes(counts) if counts else b""

    def set_counts(self, counts: bytes | bytearray) -> None:
        """Continue from what another member's `counts` gave."""
        with torch.no_grad():
            for one, theirs in zip(self._counts(), from_bytes(counts), strict=True):
                one.copy_(theirs)

    def _counts(self) -> list[torch.Tensor]:
        """Of buffers that the state has: those that it lacks are the same at all members, or of no account."""
        stored = self._model.state_dict(keep_vars=True)
        buffers = [(name, one) for name, one in self._model.named_buffers() if name in stored]
        return [one for name, one in buffers if not _is_running(name, one)]

    def _others(self) -> list[torch.Tensor]:
        """Counts of steps are left out: they are the same at all members."""
        running = [one for name, one in self._model.named_buffers() if _is_running(name, one)]
        states = [self._optimizer.state.get(one, {}) for one in self._parameters]
        moments = [value for state in states for name, value in sorted(state.items()) if name != _COUNT]
        return [one for one in [*running, *moments] if torch.is_tensor(one) and one.is_floating_point()]

    def _flat(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """A copy, on the CPU."""
        parts = [one.detach().reshape(-1).to("cpu", self.dtype) for one in tensors]
        return torch.cat([torch.zeros(0, dtype=self.dtype), *parts])

    def _check(self) -> None:
        if not self._parameters:
            raise LearningError("the model has no parameters to train", "check their requires_grad")
        if any(one.is_complex() for one in self._parameters):
            raise LearningError("the model has complex parameters", "give real and imaginary parts of their own")
        known = set(map(id, self._parameters))
        for group in self._optimizer.param_groups:
            if any(id(one) not in known and one.requires_grad for one in group["params"]):
                raise LearningError(
                    "the optimizer has parameters that are not the model's", "give one module that holds all of them"
                )
        for part, others in ((self._optimizer, _OTHER_OPTIMIZERS), (self._scheduler, _OTHER_SCHEDULERS)):
            if isinstance(part, others):
                raise LearningError(
                    f"{type(part).__name__} asks for more than a gradient", "take another one, such as Adam or StepLR"
                )
        try:
            self.state()
        except TypeError as error:
            raise LearningError(f"a state that cannot be stored: {error}", "take another scheduler") from error

    def _named(self) -> list[tuple[str, Any]]:
        named = [("model", self._model), ("optimizer", self._optimizer), ("scheduler", self._scheduler)]
        return [(name, part) for name, part in named if part is not None]


def _is_running(name: str, buffer: torch.Tensor) -> bool:
    """Whether it is a running mean or variance."""
    return name.rpartition(".")[2].startswith(_RUNNING) and buffer.is_floating_point()


def _parts(tensors: Sequence[torch.Tensor], vector: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Each tensor with its part of a flat vector."""
    begin = 0
    for one in tensors:
        yield one, vector[begin : begin + one.numel()].view_as(one)
        begin += one.numel()
