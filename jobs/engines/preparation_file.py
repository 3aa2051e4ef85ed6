"""The TOML file beside a model: how its images are prepared, and what its outputs are."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from jobs.engines.description import CHANNELS_FIRST, CHANNELS_LAST, ImageInput
from jobs.images.preparation import BGR, GREY, GREY_MEAN, GREY_STD, MEAN, RGB, STD, Preparation, usual_resize

CLASSES, TENSORS = "classes", "tensors"
STRETCH = "stretch"


@dataclass(frozen=True)
class PreparationFile:
    """What was written; None where nothing was, so that what is usual holds.

    crop     height and width that the network sees; needed only where the model leaves them open
    resize   the short side before the crop, or "stretch" for the whole image
    scale    what pixels are divided by before mean and std
    layout   NCHW or NHWC; needed only where the model leaves it open
    output   "classes", or "tensors" for one column an output
    softmax  whether the numbers of the classes still have to be made probabilities
    """

    crop: tuple[int, int] | None = None
    resize: int | str | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    scale: float | None = None
    channels: str | None = None
    layout: str | None = None
    output: str = CLASSES
    softmax: bool | None = None

    @classmethod
    def read(cls, file: Path | None) -> PreparationFile:
        """What the file says, if there is one; ValueError names the key that is wrong."""
        if file is None:
            return cls()
        try:
            body = tomllib.loads(file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{file.name} cannot be read: {error}") from None
        names = [field.name for field in fields(cls)]
        for key, value in body.items():
            if key not in names:
                raise ValueError(f"{file.name} has the key {key}, which nothing reads: write one of {', '.join(names)}")
            if not _RULES[key](value):
                raise ValueError(f"{file.name}: {key} cannot be {value!r}: {_WANTED[key]}")
        checked: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in body.items()}
        return cls(**checked)

    def preparation(self, image: ImageInput) -> Preparation:
        """All of it for the images that a network takes; ValueError when both do not fit."""
        crop = (image.height, image.width)
        if self.crop is not None and self.crop != crop:
            raise ValueError(f"the preparation's crop is {list(self.crop)}, and the model takes {list(crop)}")
        channels = self.channels or (GREY if image.channels == 1 else RGB)
        if (channels == GREY) != (image.channels == 1):
            raise ValueError(f"the preparation's channels are {channels}, and the model takes {image.channels}")
        mean, std, scale = self._numbers(image)
        if not len(mean) == len(std) == image.channels:
            raise ValueError(f"mean and std have {len(mean)} and {len(std)} numbers for {image.channels} channels")
        resize = None if self.resize == STRETCH else int(self.resize or usual_resize(crop))
        if resize is not None and resize < min(crop):
            raise ValueError(f"resize is {resize}, and the crop of {list(crop)} does not fit into it: make it larger")
        return Preparation(crop, resize, mean, std, scale, channels)

    def _numbers(self, image: ImageInput) -> tuple[tuple[float, ...], tuple[float, ...], float]:
        """Mean, std and scale; whole numbers are taken as they are in the image."""
        if np.dtype(image.dtype).kind in "ui":
            if (self.mean, self.std, self.scale) != (None, None, None):
                raise ValueError(f"the model takes {image.dtype} pixels: leave mean, std and scale out")
            return (0.0,) * image.channels, (1.0,) * image.channels, 1.0
        usual = (GREY_MEAN, GREY_STD) if image.channels == 1 else (MEAN, STD)
        return self.mean or usual[0], self.std or usual[1], self.scale or 255.0


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, int | float) and np.isfinite(one) for one in value)


def _is_side(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 16384


_RULES: Mapping[str, Callable[[Any], bool]] = {
    "crop": lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_side, value)),
    "resize": lambda value: _is_side(value) or value == STRETCH,
    "mean": lambda value: _is_numbers(value) and len(value) in (1, 3),
    "std": lambda value: _is_numbers(value) and len(value) in (1, 3) and min(value) > 0,
    "scale": lambda value: _is_numbers([value]) and value > 0,
    "channels": lambda value: value in (RGB, BGR, GREY),
    "layout": lambda value: value in (CHANNELS_FIRST, CHANNELS_LAST),
    "output": lambda value: value in (CLASSES, TENSORS),
    "softmax": lambda value: isinstance(value, bool),
}
_WANTED = {
    "crop": "write [height, width]",
    "resize": f'write pixels, or "{STRETCH}"',
    "mean": "write a number for each channel",
    "std": "write a number above 0 for each channel",
    "scale": "write a number above 0",
    "channels": f"write {RGB}, {BGR} or {GREY}",
    "layout": f"write {CHANNELS_FIRST} or {CHANNELS_LAST}",
    "output": f"write {CLASSES} or {TENSORS}",
    "softmax": "write true or false",
}
