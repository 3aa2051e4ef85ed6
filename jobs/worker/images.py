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
    decoded = cv2.imdecode(np.frombuffer(content, dtype=np.uint8), cv2.IMREAD_COLOR)
    if decoded is None:
        raise ValueError("not a picture of a known format")
    pixels = cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB)
    return pixels


def prepare(pixels: np.ndarray) -> np.ndarray:
    """Short side to 256, the 224 x 224 in the middle, ImageNet's mean and spread; (3, 224, 224) float32."""
    height, width = pixels.shape[:2]
    scale = SHORT_SIDE / min(height, width)
    size = (max(CROP, round(width * scale)), max(CROP, round(height * scale)))
    resized = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    top, left = (size[1] - CROP) // 2, (size[0] - CROP) // 2
    cropped = resized[top : top + CROP, left : left + CROP].astype(np.float32) / 255
    return np.ascontiguousarray(((cropped - MEAN) / SPREAD).transpose(2, 0, 1))
