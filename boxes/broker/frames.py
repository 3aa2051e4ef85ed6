"""How the broker and its callers speak.

A caller sends its order, a line of JSON with one open file beside it, and then a letter for each wish; when it hangs
up, its box ends. The broker answers in frames, as Docker's are: a byte that tells what it is, three bytes of zero, the
length of the content in four bytes, the content.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

SOCKET = "/run/nodewise/boxes.sock"
STDOUT, STDERR, REPORT = 1, 2, 3
SOFTLY, HARDLY, USE = b"T", b"K", b"U"
MOST_ORDER_BYTES = 4 << 20
HEADER = struct.Struct(">BxxxL")


def report(content: Mapping[str, Any]) -> bytes:
    """A frame that tells something of the box."""
    text = json.dumps(content).encode()
    return HEADER.pack(REPORT, len(text)) + text


def read_frame(read: Callable[[int], bytes]) -> tuple[int, bytes] | None:
    """The next frame, by what it is and its content; None at the end, also at one in the middle of a frame.

    `read` returns at most so many bytes, and none at the end.
    """
    header = _read_all(read, HEADER.size)
    if len(header) < HEADER.size:
        return None
    kind, length = HEADER.unpack(header)
    content = _read_all(read, length)
    return (kind, content) if len(content) == length else None


def _read_all(read: Callable[[int], bytes], size: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < size and (piece := read(size - len(pieces))):
        pieces += piece
    return bytes(pieces)
