"""From the bytes of a picture to what a network of ImageNet's kind expects."""

from __future__ import annotations

import cv2
import numpy as np
import simplejpeg

SHORT_SIDE = 256
CROP = 224
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
SPREAD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def decode(content: bytes) -> np.ndarray:
    """Pixels (height, width, 3) in RGB, uint8; ValueError says why the bytes are no picture."""
    if not content:
        raise ValueError("the file is empty")
    pixels: np.ndarray
    if content[:2] == b"\xff\xd8":
        # Strict: a truncated JPEG is an error here, where OpenCV would fill the rest with grey.
        pixels = simplejpeg.decode_jpeg(content, "RGB", min_height=SHORT_SIDE, min_width=SHORT_SIDE)
        return pixels
    try:
        decoded = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as error:  # for example a header that claims more pixels than OpenCV takes
        raise ValueError(f"cannot be decoded: {error.err}") from error
    if decoded is None:
        raise ValueError("not a picture of a known format")
    pixels = cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB)
    return pixels


def prepare(pixels: np.ndarray) -> np.ndarray:
    """The middle as large as 224 of a short side of 256, ImageNet's mean and spread; (3, 224, 224) float32.

    Cropped before it is resized, so that a long strip needs no more memory than a square.
    """
    height, width = pixels.shape[:2]
    side = max(1, round(min(height, width) * CROP / SHORT_SIDE))
    top, left = (height - side) // 2, (width - side) // 2
    square = pixels[top : top + side, left : left + side]
    resized = cv2.resize(square, (CROP, CROP), interpolation=cv2.INTER_AREA if side > CROP else cv2.INTER_LINEAR)
    return np.ascontiguousarray(((resized.astype(np.float32) / 255 - MEAN) / SPREAD).transpose(2, 0, 1))
