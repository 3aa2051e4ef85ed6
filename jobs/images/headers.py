"""What an image's first bytes claim about its size, before anything is allocated for it."""

from __future__ import annotations

import re
import struct

import simplejpeg

UNKNOWN = "not an image of a known format (JPEG, PNG, BMP, TIFF, WebP and PPM are)"
JPEG = b"\xff\xd8"
_SCAN, _END = 0xDA, 0xD9
_MARKER = re.compile(rb"\xff+[^\x00\xff]")
_TIFF_WIDTH, _TIFF_HEIGHT = 256, 257
_TIFF_NUMBERS = {3: "H", 4: "I", 16: "Q"}
_BETWEEN = rb"(?:\s|#[^\n\r]*[\n\r])+"
_PNM = re.compile(rb"P[1-6]%b(\d{1,9})%b(\d{1,9})\s" % (_BETWEEN, _BETWEEN))
"""Bitmap, grey or colour, as text or bytes."""
_PNM_BYTES = 4096


def size(content: bytes) -> tuple[int, int]:
    """(width, height) as the header has them; ValueError when the bytes are no image of a known format."""
    try:
        if content.startswith(JPEG):
            height, width, _, _ = simplejpeg.decode_jpeg_header(content)
            return width, height
        if content.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack_from(">II", content, 16)
        if content.startswith(b"BM"):
            return _bmp(content)
        if content.startswith((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")):
            return _tiff(content)
        if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
            return _webp(content)
        if found := _PNM.match(content, 0, _PNM_BYTES):
            return int(found[1]), int(found[2])
    except (struct.error, OverflowError):  # a place behind any end
        raise ValueError("not an image: it ends within its header") from None
    raise ValueError(UNKNOWN)


def tidy(content: bytes) -> bytes:
    """A JPEG without bytes that stand between the segments of its header, where none belong."""
    parts, place = [JPEG], len(JPEG)
    while (marker := _MARKER.search(content, place)) and content[marker.end() - 1] not in (_SCAN, _END):
        length = max(2, int.from_bytes(content[marker.end() : marker.end() + 2], "big"))
        place = marker.end() + length
        parts.append(content[marker.start() : place])
    return b"".join(parts) + content[marker.start() if marker else place :]


def _bmp(content: bytes) -> tuple[int, int]:
    (header,) = struct.unpack_from("<I", content, 14)
    width, height = struct.unpack_from("<HH" if header == 12 else "<ii", content, 18)
    return abs(width), abs(height)


def _tiff(content: bytes) -> tuple[int, int]:
    """Of the first image: a table of entries (tag, type, count, value), at a place that the header names.

    In a BigTIFF, whose fourth or third byte is a plus, places and counts have eight bytes.
    """
    order = "<" if content.startswith(b"II") else ">"
    place_kind, count_kind, at = ("Q", "Q", 8) if b"+" in content[:4] else ("I", "H", 4)
    (table,) = struct.unpack_from(order + place_kind, content, at)
    (entries,) = struct.unpack_from(order + count_kind, content, table)
    first, size = table + struct.calcsize(count_kind), 4 + 2 * struct.calcsize(place_kind)
    found: dict[int, int] = {}
    for place in range(first, first + size * entries, size):
        tag, kind = struct.unpack_from(f"{order}HH", content, place)
        if tag in (_TIFF_WIDTH, _TIFF_HEIGHT):
            value = place + 4 + struct.calcsize(place_kind)
            (found[tag],) = struct.unpack_from(order + _TIFF_NUMBERS.get(kind, "I"), content, value)
    if len(found) < 2:
        raise ValueError("not an image: a TIFF without width and height")
    return found[_TIFF_WIDTH], found[_TIFF_HEIGHT]


def _webp(content: bytes) -> tuple[int, int]:
    """Lossy, lossless or extended: 14 bits each at byte 26, 14 bits less one at 21, 24 bits less one at 24."""
    kind = content[12:16]
    if kind == b"VP8X":
        low, high = struct.unpack_from("<IH", content, 24)
        return (low & 0xFFFFFF) + 1, (low >> 24 | high << 8) + 1
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", content, 26)
    return width & 0x3FFF, height & 0x3FFF
