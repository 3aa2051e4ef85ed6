"""How the broker and its callers speak.

A caller sends its order, a line of JSON with one open file beside it, and then a letter for each wish; when it hangs
up, its box ends. To a terminal it sends frames. The broker answers in frames, as Docker's are: a byte that tells what
it is, three bytes of zero, the length of the content in four bytes, the content.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

SOCKET = "/run/nodewise/boxes.sock"
INPUT, STDOUT, STDERR, REPORT, SIZE = range(5)
SOFTLY, HARDLY, USE = b"T", b"K", b"U"
MOST_ORDER_BYTES = 4 << 20
MOST_FRAME_BYTES = 16 << 20
MOST_INPUT_BYTES = 1 << 16
TERM = "xterm-256color"
"""What programs take a terminal for, whatever it is: nearly all terminals understand that."""
LONGEST_SIDE = 1000
"""Columns or rows of a terminal."""
HEADER = struct.Struct(">BxxxL")
SIDES = struct.Struct(">HH")
"""The content of a frame SIZE: columns and rows."""


def frame(kind: int, content: bytes) -> bytes:
    """One frame."""
    return HEADER.pack(kind, len(content)) + content


def report(content: Mapping[str, Any]) -> bytes:
    """A frame that tells something of the box."""
    return frame(REPORT, json.dumps(content).encode())


def read_frame(read: Callable[[int], bytes], most: int = MOST_FRAME_BYTES) -> tuple[int, bytes] | None:
    """The next frame, by what it is and its content; None at the end, also at one in the middle of a frame.

    `read` returns at most so many bytes, and none at the end. ConnectionError for a frame with more than `most` bytes.
    """
    header = _read_all(read, HEADER.size)
    if len(header) < HEADER.size:
        return None
    kind, length = HEADER.unpack(header)
    if length > most:
        raise ConnectionError(f"a frame of {length} bytes")
    content = _read_all(read, length)
    return (kind, content) if len(content) == length else None


def _read_all(read: Callable[[int], bytes], size: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < size and (piece := read(size - len(pieces))):
        pieces += piece
    return bytes(pieces)
