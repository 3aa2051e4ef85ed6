"""Decoding and preparing images as the worker does it, in the worker's own environment."""

from __future__ import annotations

import resource
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest

from jobs.images import decoding
from jobs.images.headers import size, tidy
from jobs.images.preparation import MEAN, STD, Preparation

USUAL = Preparation((224, 224), 256)


def decode(content: bytes) -> np.ndarray:
    return decoding.decode(content, USUAL.needed_side)


def prepare(pixels: np.ndarray, how: Preparation = USUAL) -> np.ndarray:
    return decoding.prepare(pixels, how)


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
        (b"no image at all", "not an image"),
        (encoded(RED, ".jpg")[:2000], ""),
        (b"\xff\xd8" + b"\x00" * 500, ""),
        (encoded(RED, ".png")[:40], "not an image"),
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
    np.testing.assert_allclose(prepared[:, 100, 100], (1 - np.array(MEAN)) / STD, rtol=1e-5)


def test_a_long_strip_needs_no_more_memory_than_a_square() -> None:
    assert prepare(np.zeros((1, 40_000, 3), dtype=np.uint8)).shape == (3, 224, 224)


def with_size(kind: str, width: int, height: int) -> bytes:
    """An image of a format whose header claims another size than it has."""
    content = bytearray(encoded(np.zeros((40, 60, 3), dtype=np.uint8), kind))
    if kind == ".png":
        content[16:24] = struct.pack(">II", width, height)
        content[29:33] = struct.pack(">I", zlib.crc32(bytes(content[12:29])))
    elif kind == ".bmp":
        content[18:26] = struct.pack("<ii", width, -height)
    elif kind == ".webp":
        content[21:25] = struct.pack("<I", (width - 1) | (height - 1) << 14)
    elif kind == ".jpg":
        frame = content.index(b"\xff\xc0")
        content[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    else:
        old, new = struct.pack("<HHII", 256, 4, 1, 60), struct.pack("<HHII", 256, 4, 1, width)
        short = struct.pack("<HHIHH", 256, 3, 1, 60, 0)
        content = content.replace(old, new).replace(short, new)
        for kind_of_height in (struct.pack("<HHII", 257, 4, 1, 40), struct.pack("<HHIHH", 257, 3, 1, 40, 0)):
            content = content.replace(kind_of_height, struct.pack("<HHII", 257, 4, 1, height))
    return bytes(content)


@pytest.mark.parametrize(
    ("kind", "width", "height"),
    [*((kind, 50_000, 50_000) for kind in (".jpg", ".png", ".bmp", ".tiff")), (".webp", 16_383, 16_383)],
)
def test_a_header_that_claims_too_many_pixels_is_refused_before_anything_is_allocated(
    kind: str, width: int, height: int
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(ValueError, match=f"claims {width} x {height} pixels"):
        decode(with_size(kind, width, height))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


@pytest.mark.parametrize("kind", [".jpg", ".png", ".bmp", ".tiff", ".webp"])
def test_the_size_in_a_header_is_the_size_of_the_picture(kind: str) -> None:
    assert size(encoded(np.zeros((40, 61, 3), dtype=np.uint8), kind)) == (61, 40)


@pytest.mark.parametrize("quality", [101, 80], ids=["lossless", "lossy"])
def test_webp_of_either_kind_is_known(quality: int) -> None:
    pixels = np.random.default_rng(1).integers(0, 255, (40, 61, 3), dtype=np.uint8)
    content = bytes(cv2.imencode(".webp", pixels, [cv2.IMWRITE_WEBP_QUALITY, quality])[1])

    assert size(content) == (61, 40)
    assert decode(content).shape == (40, 61, 3)


@pytest.mark.parametrize("kind", [".jpg", ".png", ".bmp", ".tiff", ".webp"])
def test_a_picture_cut_off_anywhere_is_decoded_or_refused_with_a_reason(kind: str) -> None:
    content = encoded(np.random.default_rng(1).integers(0, 255, (40, 61, 3), dtype=np.uint8), kind)

    for length in range(min(len(content), 200)):
        with pytest.raises(ValueError, match=r"\w+"):
            decode(content[:length])


def test_four_inks_are_turned_into_three_colours() -> None:
    content = (Path(__file__).parent / "cmyk.jpg").read_bytes()

    pixels = decode(content).astype(int)

    assert pixels.shape == (120, 160, 3)
    np.testing.assert_allclose(pixels[60:, :].mean(axis=(0, 1)), (161, 93, 74), atol=3)


def test_four_inks_cut_off_are_refused() -> None:
    with pytest.raises(ValueError, match="Premature end"):
        decode((Path(__file__).parent / "cmyk.jpg").read_bytes()[:4000])


def test_a_large_picture_of_any_format_is_shrunk_before_it_is_converted() -> None:
    assert decode(encoded(np.zeros((2000, 3000, 3), dtype=np.uint8), ".png")).shape == (285, 428, 3)


NOISE = np.random.default_rng(1).integers(0, 255, (300, 400, 3), dtype=np.uint8)
RESTARTS = [cv2.IMWRITE_JPEG_RST_INTERVAL, 10]
PROGRESSIVE = [cv2.IMWRITE_JPEG_PROGRESSIVE, 1]


def jpeg(*flags: int) -> bytes:
    return bytes(cv2.imencode(".jpg", NOISE, flags)[1])


@pytest.mark.parametrize("flags", [[], PROGRESSIVE], ids=["baseline", "progressive"])
def test_bytes_too_many_in_a_jpeg_s_header_or_before_its_end_are_passed_over(flags: list[int]) -> None:
    content = jpeg(*flags)
    tables = content.index(b"\xff\xc4")
    more = content[:2] + b"\0" + content[2:tables] + b"ab" + content[tables:-2] + b"\0" * 65 + content[-2:]

    np.testing.assert_array_equal(decode(more), decode(content))


@pytest.mark.parametrize("flags", [[], PROGRESSIVE, RESTARTS], ids=["baseline", "progressive", "restarts"])
@pytest.mark.parametrize("behind", [b"", b"\xff\xd9", b"\0" * 500 + b"\xff\xd9"], ids=["cut", "ended", "filled"])
def test_a_jpeg_that_ends_too_early_is_refused_even_with_bytes_too_many(flags: list[int], behind: bytes) -> None:
    content = jpeg(*flags)

    with pytest.raises(ValueError, match=r"Corrupt|Premature"):
        decode(content[:2] + b"\0" + content[2 : len(content) // 2] + behind)


def test_a_header_that_was_tidied_stays_as_it_is() -> None:
    chance = np.random.default_rng(1)

    for _ in range(100):
        content = b"\xff\xd8" + chance.choice([0, 2, 0xC4, 0xE0, 0xFF], 200_000).astype(np.uint8).tobytes()
        assert tidy(tidy(content)) == tidy(content)


COLOURS = bytes(range(60))


def pnm(kind: bytes, samples: bytes, most: bytes = b"255\n") -> bytes:
    return kind + b"\n# 7 8\n5 4\n" + most + samples


@pytest.mark.parametrize(
    ("content", "pixel"),
    [
        (pnm(b"P1", b"0 0 0 0 0 0 1 " + b"0 " * 13 + b"\n", b""), (0, 0, 0)),
        (pnm(b"P2", b" ".join(b"%d" % n for n in range(20)) + b"\n"), (6, 6, 6)),
        (pnm(b"P3", b" ".join(b"%d" % n for n in COLOURS) + b"\n"), (18, 19, 20)),
        (pnm(b"P4", b"\0\x40\0\0", b""), (0, 0, 0)),
        (pnm(b"P5", COLOURS[:20]), (6, 6, 6)),
        (pnm(b"P6", COLOURS), (18, 19, 20)),
    ],
    ids=["P1", "P2", "P3", "P4", "P5", "P6"],
)
def test_portable_bitmaps_greys_and_colours_are_decoded(content: bytes, pixel: tuple[int, int, int]) -> None:
    pixels = decode(content)

    assert size(content) == (5, 4)
    assert pixels.shape == (4, 5, 3)
    assert tuple(pixels[1, 1]) == pixel


@pytest.mark.parametrize("content", [b"P6 50000 50000 255 ", b"P1\n#a\n50000\t50000\n1"])
def test_a_portable_picture_that_claims_too_many_pixels_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="claims 50000 x 50000 pixels"):
        decode(content)


@pytest.mark.parametrize("content", [b"P6", b"P6 5", b"P5\n5 four ", b"P7\n5 4\n255\n", b"Pictures 5 4 "])
def test_what_only_begins_like_a_portable_picture_is_none(content: bytes) -> None:
    with pytest.raises(ValueError, match="not an image of a known format"):
        decode(content)


def big_tiff(order: str, width: int, height: int, table: int = 16) -> bytes:
    """Grey, counting up, as a file for more than 4 GB."""
    samples = bytes(range(20))
    tags = {256: width, 257: height, 258: 8, 259: 1, 262: 1, 273: 16 + 8 + 20 * 9 + 8, 277: 1, 278: height, 279: 20}
    entries = b"".join(struct.pack(f"{order}HHQQ", tag, 16, 1, value) for tag, value in tags.items())
    head = b"II" if order == "<" else b"MM"
    return head + struct.pack(f"{order}HHHQQ", 43, 8, 0, table, len(tags)) + entries + bytes(8) + samples


@pytest.mark.parametrize("order", ["<", ">"])
def test_big_tiffs_are_decoded_and_their_claims_checked(order: str) -> None:
    content = big_tiff(order, 5, 4)

    assert size(content) == (5, 4)
    assert tuple(decode(content)[1, 1]) == (6, 6, 6)
    with pytest.raises(ValueError, match="claims 5000000000 x 4 pixels"):
        decode(big_tiff(order, 5_000_000_000, 4))
    for place in (1 << 63, 1 << 62, 1 << 40):
        with pytest.raises(ValueError, match="ends within its header"):
            decode(big_tiff(order, 5, 4, place))


def test_the_middle_of_the_picture_is_kept() -> None:
    pixels = np.zeros((256, 512, 3), dtype=np.uint8)
    pixels[:, 144:368] = 255

    prepared = prepare(pixels)

    np.testing.assert_allclose(
        prepared, np.broadcast_to(((1 - np.array(MEAN)) / STD)[:, None, None], prepared.shape), rtol=1e-4
    )
