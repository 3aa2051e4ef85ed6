"""Decoding and preparing pictures as the worker does it, in the worker's own environment."""

from __future__ import annotations

import struct
import zlib

import cv2
import numpy as np
import pytest

from jobs.worker.images import MEAN, SPREAD, decode, prepare


def encoded(pixels: np.ndarray, kind: str) -> bytes:
    return bytes(cv2.imencode(kind, cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))[1])


RED = np.full((375, 500, 3), (200, 10, 30), dtype=np.uint8)


@pytest.mark.parametrize("kind", [".jpg", ".png", ".bmp"])
def test_a_picture_comes_back_in_red_green_blue(kind: str) -> None:
    pixels = decode(encoded(RED, kind))

    assert min(pixels.shape[:2]) >= 256
    assert np.abs(pixels.astype(int) - (200, 10, 30)).max() <= 3


def test_a_large_jpeg_is_decoded_smaller_but_never_below_what_is_needed() -> None:
    pixels = decode(encoded(np.zeros((2000, 3000, 3), dtype=np.uint8), ".jpg"))

    assert min(pixels.shape[:2]) >= 256
    assert max(pixels.shape[:2]) < 1500


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"no picture at all", "not a picture"),
        (encoded(RED, ".jpg")[:2000], ""),
        (b"\xff\xd8" + b"\x00" * 500, ""),
        (encoded(RED, ".png")[:40], "not a picture"),
    ],
    ids=["empty", "text", "truncated jpeg", "jpeg header only", "truncated png"],
)
def test_what_is_no_picture_is_an_error_that_says_why(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode(content)


@pytest.mark.parametrize("shape", [(375, 500), (500, 375), (256, 256), (50, 40), (224, 1000)])
def test_every_shape_becomes_the_network_s(shape: tuple[int, int]) -> None:
    prepared = prepare(np.full((*shape, 3), 255, dtype=np.uint8))

    assert prepared.shape == (3, 224, 224)
    assert prepared.dtype == np.float32
    np.testing.assert_allclose(prepared[:, 100, 100], (1 - MEAN) / SPREAD, rtol=1e-5)


def test_a_long_strip_needs_no_more_memory_than_a_square() -> None:
    assert prepare(np.zeros((1, 40_000, 3), dtype=np.uint8)).shape == (3, 224, 224)


def test_a_header_that_claims_too_many_pixels_is_an_error_of_this_picture() -> None:
    huge = bytearray(encoded(RED, ".png"))
    huge[16:24] = struct.pack(">II", 60_000, 60_000)
    huge[29:33] = struct.pack(">I", zlib.crc32(bytes(huge[12:29])))

    with pytest.raises(ValueError, match=r"decoded|not a picture"):
        decode(bytes(huge))


def test_the_middle_of_the_picture_is_kept() -> None:
    pixels = np.zeros((256, 512, 3), dtype=np.uint8)
    pixels[:, 144:368] = 255

    prepared = prepare(pixels)

    np.testing.assert_allclose(
        prepared, np.broadcast_to(((1 - MEAN) / SPREAD)[:, None, None], prepared.shape), rtol=1e-4
    )
