"""From the bytes of a picture to what a network of ImageNet's kind expects."""

from __future__ import annotations

import cv2
import numpy as np
import simplejpeg

from jobs.images import headers

SHORT_SIDE = 256
CROP = 224
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
SPREAD = np.array([0.229, 0.224, 0.225], dtype=np.float32)
MOST_PIXELS = 120_000_000
"""Of one picture: decoded it has three bytes each, and a container about one GiB."""
_SCALE = 1 / (255 * SPREAD)
_SHIFT = MEAN / SPREAD
_SURPLUS = "extraneous bytes before marker"
_SURPLUS_AT_END = f"{_SURPLUS} 0xd9"
_RESTARTS = b"\xff\xdd"


def decode(content: bytes) -> np.ndarray:
    """Pixels (height, width, 3) in RGB, uint8, perhaps shrunk; ValueError says why the bytes are no picture."""
    if not content:
        raise ValueError("the file is empty")
    if content.startswith(headers.JPEG):
        return _jpeg(content)
    _size(content)
    try:
        decoded = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise ValueError(f"cannot be decoded: {error.err}") from error
    if decoded is None:
        raise ValueError("not a picture that can be decoded: it is damaged or cut off")
    pixels: np.ndarray = cv2.cvtColor(_shrunk(decoded), cv2.COLOR_BGR2RGB)
    return pixels


def _size(content: bytes) -> tuple[int, int]:
    width, height = headers.size(content)
    if width * height > MOST_PIXELS:
        raise ValueError(f"claims {width} x {height} pixels, and at most {MOST_PIXELS:,} are decoded")
    return width, height


def _jpeg(content: bytes) -> np.ndarray:
    """Strict: a truncated JPEG is an error here, where OpenCV would fill the rest with grey.

    Surplus bytes are passed over between the segments of the header and behind the last scan: libjpeg names the first
    thing it finds wrong, so all was there up to them. Between scans or restarts they are an error, as more may be wrong
    behind them.
    """
    try:
        return _decoded(content, strict=True)
    except ValueError as error:
        if _SURPLUS not in str(error):
            raise
        tidied = headers.tidied(content)
        if tidied != content:
            return _jpeg(tidied)
        if _SURPLUS_AT_END not in str(error) or _RESTARTS in content:
            raise
        return _decoded(content, strict=False)


def _decoded(content: bytes, strict: bool) -> np.ndarray:
    """Shrunk by a power of two if at all: libjpeg-turbo is slower by any other ratio than without."""
    width, height = _size(content)
    times = next((times for times in (8, 4, 2) if min(width, height) >= times * SHORT_SIDE), 1)
    least = {"min_height": -(-height // times), "min_width": -(-width // times)} if times > 1 else {}
    pixels: np.ndarray = simplejpeg.decode_jpeg(content, "RGB", strict=strict, **least)
    return pixels


def _shrunk(pixels: np.ndarray) -> np.ndarray:
    """By a whole number, as a JPEG is when it is decoded, so that what follows needs little memory."""
    height, width = pixels.shape[:2]
    times = min(height, width) // SHORT_SIDE
    if times < 2:
        return pixels
    smaller: np.ndarray = cv2.resize(pixels, (width // times, height // times), interpolation=cv2.INTER_AREA)
    return smaller


def prepare(pixels: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The middle as large as 224 of a short side of 256, ImageNet's mean and spread; (3, 224, 224) float32, in `out`.

    Cropped before it is resized, so that a long strip needs no more memory than a square. Averaging over areas is worth
    its time only where several pixels become one.
    """
    height, width = pixels.shape[:2]
    side = max(1, round(min(height, width) * CROP / SHORT_SIDE))
    top, left = (height - side) // 2, (width - side) // 2
    square = pixels[top : top + side, left : left + side]
    resized = cv2.resize(square, (CROP, CROP), interpolation=cv2.INTER_AREA if side >= 2 * CROP else cv2.INTER_LINEAR)
    planes = np.empty((3, CROP, CROP), dtype=np.float32) if out is None else out
    for plane, colour, scale, shift in zip(planes, cv2.split(resized), _SCALE, _SHIFT, strict=True):
        np.multiply(colour, scale, out=plane, casting="unsafe")
        plane -= shift
    return planes
