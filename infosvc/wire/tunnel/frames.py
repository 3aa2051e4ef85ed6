"""What travels in a tunnel: frames of several lines, each a terminal or a connection of its own. Standard library only.

A frame has a byte that tells its kind, the number of its line in two bytes, the length of its content in four bytes,
and the content. The user's side opens lines and numbers them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from infosvc.wire.errors import InvalidInput

IDLE, OPEN, DATA, TAKEN, SIZE, CLOSE = range(6)
"""Kinds: nothing to say; open a line, as JSON tells; its bytes; how many of them were taken; its terminal's columns and
rows; its end, as JSON tells."""
HEADER = struct.Struct(">BHL")
COUNT = struct.Struct(">L")
SIDES = struct.Struct(">HH")
LONGEST_CONTENT = 1 << 16
MOST_LINES = 1 << 16


class Frame(NamedTuple):
    """One frame; `line` is 0 for IDLE."""

    kind: int
    line: int = 0
    content: bytes = b""

    def encode(self) -> bytes:
        """As it travels."""
        return HEADER.pack(self.kind, self.line, len(self.content)) + self.content


IDLING = Frame(IDLE).encode()


def line_frame(kind: int, line: int, said: Mapping[str, Any]) -> Frame:
    """A frame OPEN or CLOSE; InvalidInput when it would be too long."""
    content = json.dumps(said).encode()
    if len(content) > LONGEST_CONTENT:
        raise InvalidInput(
            f"what is asked of a line has {len(content)} bytes: it may have {LONGEST_CONTENT}",
            "argv",
            remedy="give fewer arguments",
        )
    return Frame(kind, line, content)


def content_of(frame: Frame) -> Mapping[str, Any]:
    """What a frame OPEN or CLOSE says: an empty mapping where it holds no JSON object."""
    try:
        found = json.loads(frame.content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def take_whole(buffer: bytearray) -> list[Frame]:
    """Take all whole frames off the beginning of a buffer; ValueError for what is no frame.

    >>> buffer = bytearray(Frame(DATA, 7, b"abc").encode() + b"rest")
    >>> take_whole(buffer), bytes(buffer)
    ([Frame(kind=2, line=7, content=b'abc')], b'rest')
    """
    found, begin = [], 0
    while len(buffer) - begin >= HEADER.size:
        kind, line, length = HEADER.unpack_from(buffer, begin)
        if kind > CLOSE or length > LONGEST_CONTENT:
            raise ValueError(f"a frame of kind {kind} and {length} bytes")
        end = begin + HEADER.size + length
        if end > len(buffer):
            break
        found.append(Frame(kind, line, bytes(buffer[begin + HEADER.size : end])))
        begin = end
    del buffer[:begin]
    return found
