"""What computes gradients, one file an engine; each has the methods of `Learner`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch


class Learner(Protocol):
    """A model with its optimizer. Gradients are one flat vector of `size` numbers of `dtype`, on the CPU."""

    size: int
    dtype: torch.dtype

    def gradient(self, loss: Callable[[], Any], weight: float, into: torch.Tensor) -> float:
        """Add `weight` times the gradient of `loss()`, a mean over samples, to `into`; the loss as a number."""

    def apply(self, gradient: torch.Tensor) -> None:
        """Make one step of the optimizer with this gradient."""

    def state(self, before: bytes = b"") -> bytes:
        """All that the next steps depend on, behind `before`: to put that there later would copy it all."""

    def load(self, state: bytes | memoryview) -> None:
        """Continue from a state, which is given away if it can be written; LearningError for one of another model."""

    def values(self) -> tuple[torch.Tensor, torch.Tensor]:
        """What members average after steps of their own, as two new flat vectors of `dtype`.

        The parameters, `size` numbers in the order of the gradient; and all else that a mean makes sense of, such as
        the moments of the optimizer: as many numbers at every member once each has made a step.
        """

    def set_values(self, parameters: torch.Tensor, others: torch.Tensor) -> None:
        """Continue from what `values` gave, or from means of it."""

    def counts(self) -> bytes:
        """What steps may change and no mean makes sense of, such as buffers of whole numbers; empty without any."""

    def set_counts(self, counts: bytes | bytearray) -> None:
        """Continue from what another member's `counts` gave."""
