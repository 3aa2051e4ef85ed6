"""What computes gradients, one file an engine; each has the four methods of `Learner`."""

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

    def state(self) -> bytes:
        """All that the next steps depend on."""

    def load(self, state: bytes) -> None:
        """Continue from a state; LearningError when it is of another model."""
