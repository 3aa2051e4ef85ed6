"""How an image becomes what a network expects: its size, its colours and its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
GREY_MEAN, GREY_STD = (0.449,), (0.226,)
"""Of ImageNet's pixels between 0 and 1: red, green, blue, and their means for networks that see grey."""
RGB, BGR, GREY = CHANNELS = "RGB", "BGR", "grey"
_RESIZED, _CROPPED = 256, 224
"""ImageNet's networks see the middle 224 of a short side of 256; larger ones see the same share of the image."""


@dataclass(frozen=True)
class Preparation:
    """From decoded pixels to numbers.

    crop       height and width that the network sees, in pixels
    resize     the image's short side before the crop is cut from its middle; None stretches the whole image
    mean, std  of each channel, after its pixels were divided by `scale`
    channels   RGB, BGR or grey
    """

    crop: tuple[int, int]
    resize: int | None
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD
    scale: float = 255.0
    channels: str = RGB

    @property
    def needed_side(self) -> int:
        """An image whose short side is at least so long loses nothing that the network would see."""
        return max(self.crop) if self.resize is None else self.resize

    @cached_property
    def factors(self) -> np.ndarray:
        """What the pixels of each channel are multiplied by."""
        return 1 / (np.float32(self.scale) * np.array(self.std, np.float32))

    @cached_property
    def offsets(self) -> np.ndarray:
        """What is subtracted from each channel after that."""
        return np.array(self.mean, np.float32) / np.array(self.std, np.float32)


def usual_resize(crop: tuple[int, int]) -> int:
    """The short side that ImageNet's networks are shown, for this crop.

    >>> usual_resize((224, 224)), usual_resize((299, 299))
    (256, 342)
    """
    return round(min(crop) * _RESIZED / _CROPPED)
