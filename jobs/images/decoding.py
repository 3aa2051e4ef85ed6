"""From the bytes of an image to what a network expects."""

from __future__ import annotations

import cv2
import numpy as np
import simplejpeg

from jobs.images import headers
from jobs.images.preparation import BGR, GREY, Preparation

MOST_PIXELS = 120_000_000
"""Of one image: decoded it has three bytes each, and a container about one GiB."""
_SURPLUS = "extraneous bytes before marker"
_SURPLUS_AT_END = f"{_SURPLUS} 0xd9"
_RESTARTS = b"\xff\xdd"


def decode(content: bytes, needed: int) -> np.ndarray:
    """Pixels (height, width, 3) in RGB, uint8; ValueError says why the bytes are no image.

    A large image is shrunk on the way, to a short side of at least `needed`.
    """
    if not content:
        raise ValueError("the file is empty")
    if content.startswith(headers.JPEG):
        return _jpeg(content, needed)
    _size(content)
    try:
        decoded = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise ValueError(f"cannot be decoded: {error.err}") from error
    if decoded is None:
        raise ValueError("not an image that can be decoded: it is damaged or cut off")
    pixels: np.ndarray = cv2.cvtColor(_shrunk(decoded, needed), cv2.COLOR_BGR2RGB)
    return pixels


def _size(content: bytes) -> tuple[int, int]:
    width, height = headers.size(content)
    if width * height > MOST_PIXELS:
        raise ValueError(f"claims {width} x {height} pixels, and at most {MOST_PIXELS:,} are decoded")
    return width, height


def _jpeg(content: bytes, needed: int) -> np.ndarray:
    """Strict: a truncated JPEG is an error here, where OpenCV would fill the rest with grey.

    Surplus bytes are passed over between the segments of the header and behind the last scan: libjpeg names the first
    thing it finds wrong, so all was there up to them. Between scans or restarts they are an error, as more may be wrong
    behind them.
    """
    try:
        return _decode(content, needed, strict=True)
    except ValueError as error:
        if _SURPLUS not in str(error):
            raise
        tidied = headers.tidy(content)
        if tidied != content:
            return _jpeg(tidied, needed)
        if _SURPLUS_AT_END not in str(error) or _RESTARTS in content:
            raise
        return _decode(content, needed, strict=False)


def _decode(content: bytes, needed: int, strict: bool) -> np.ndarray:
    """Shrunk by a power of two if at all: libjpeg-turbo is slower by any other ratio than without."""
    width, height = _size(content)
    times = next((times for times in (8, 4, 2) if min(width, height) >= times * needed), 1)
    least = {"min_height": -(-height // times), "min_width": -(-width // times)} if times > 1 else {}
    pixels: np.ndarray = simplejpeg.decode_jpeg(content, "RGB", strict=strict, **least)
    return pixels


def _shrunk(pixels: np.ndarray, needed: int) -> np.ndarray:
    """By a whole number, as a JPEG is when it is decoded, so that what follows needs little memory."""
    height, width = pixels.shape[:2]
    times = min(height, width) // needed
    if times < 2:
        return pixels
    smaller: np.ndarray = cv2.resize(pixels, (width // times, height // times), interpolation=cv2.INTER_AREA)
    return smaller


def prepare(pixels: np.ndarray, how: Preparation, out: np.ndarray | None = None) -> np.ndarray:
    """What a network sees of the pixels: (channels, height, width), float32, or in `out` of its own type.

    The image is cropped before it is resized, so that a long strip needs no more memory than a square. Averaging over
    areas is worth its time only where several pixels become one.
    """
    height, width = how.crop
    region = _region(pixels, how)
    quality = cv2.INTER_AREA if min(region.shape[0] / height, region.shape[1] / width) >= 2 else cv2.INTER_LINEAR
    resized = cv2.resize(region, (width, height), interpolation=quality)
    planes = np.empty((len(how.mean), height, width), dtype=np.float32) if out is None else out
    for plane, colour, factor, offset in zip(planes, _colours(resized, how), how.factors, how.offsets, strict=True):
        np.multiply(colour, factor, out=plane, casting="unsafe")
        np.subtract(plane, offset, out=plane, casting="unsafe")
    return planes


def _region(pixels: np.ndarray, how: Preparation) -> np.ndarray:
    """The middle that becomes the crop."""
    height, width = pixels.shape[:2]
    if how.resize is None:
        return pixels
    short = min(height, width)
    high, wide = (max(1, round(short * side / how.resize)) for side in how.crop)
    high, wide = min(high, height), min(wide, width)
    top, left = (height - high) // 2, (width - wide) // 2
    return pixels[top : top + high, left : left + wide]


def _colours(pixels: np.ndarray, how: Preparation) -> tuple[np.ndarray, ...]:
    if how.channels == GREY:
        return (cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY),)
    split: tuple[np.ndarray, ...] = cv2.split(pixels)
    return split[::-1] if how.channels == BGR else split
