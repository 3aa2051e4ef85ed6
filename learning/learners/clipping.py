"""Gradients that are too long."""

from __future__ import annotations

import torch


def clip(gradient: torch.Tensor, longest: float | None) -> torch.Tensor:
    """The gradient, scaled to this length when it is longer; None: as it is.

    >>> clip(torch.tensor([30.0, 40.0]), 5.0)
    tensor([3., 4.])
    """
    if longest is None:
        return gradient
    length = float(torch.linalg.vector_norm(gradient))
    return gradient * min(1.0, longest / length) if length else gradient
