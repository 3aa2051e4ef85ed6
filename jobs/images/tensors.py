"""What a network gives for an image beside classes: arrays of numbers, by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ImageArrays = np.ndarray | Sequence[np.ndarray]
"""One array for each image, of the same shape or of different ones."""


@dataclass(frozen=True)
class OutputTensor:
    """What a network gives for one image; None stands for a length that differs between images."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    @property
    def largest_bytes(self) -> int:
        """About how many bytes it has for one image."""
        return math.prod(length or 1 for length in self.shape) * np.dtype(self.dtype).itemsize
