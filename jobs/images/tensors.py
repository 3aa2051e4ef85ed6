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
    """What a network gives for one image; None stands for a length that differs between images.

    `tried` are the lengths that came when it was tried.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    tried: tuple[int, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether images may have other lengths than the one that was tried."""
        return None in self.shape

    @property
    def largest_bytes(self) -> int:
        """About how many bytes it has for one image: as many as when it was tried, where that is open."""
        lengths = self.tried if self.is_open else self.shape
        return math.prod(length or 1 for length in lengths) * stored_type(self.dtype).itemsize


def stored_type(dtype: str) -> np.dtype[np.generic]:
    """As what numbers are stored: half floats as float32, as few programs read them."""
    return np.dtype(np.float32 if dtype == "float16" else dtype)
