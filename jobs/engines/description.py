"""What a loaded network says of itself: the images that it takes and the numbers that it gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jobs.images.tensors import OutputTensor

CHANNELS_FIRST, CHANNELS_LAST = "NCHW", "NHWC"


@dataclass(frozen=True)
class ImageInput:
    """The images that a network takes, without the dimension that counts them."""

    height: int
    width: int
    channels: int = 3
    layout: str = CHANNELS_FIRST
    dtype: str = "float32"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one image, in its layout."""
        if self.layout == CHANNELS_FIRST:
            return (self.channels, self.height, self.width)
        return (self.height, self.width, self.channels)

    def planes(self, image: np.ndarray) -> np.ndarray:
        """The same memory as (channels, height, width)."""
        return image if self.layout == CHANNELS_FIRST else image.transpose(2, 0, 1)

    def __str__(self) -> str:
        return f"{self.channels} x {self.height} x {self.width} {self.dtype} as {self.layout}"


@dataclass(frozen=True)
class Description:
    """`is_probability` tells whether the first output needs no softmax; `notes` is what the user should know."""

    image: ImageInput
    outputs: tuple[OutputTensor, ...]
    is_probability: bool
    notes: tuple[str, ...] = ()
