"""Records one after the other in a file that may end in the middle of one: length, CRC-32, content."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

_HEAD = struct.Struct(">II")


def frame(content: bytes) -> bytes:
    """As it stands in the file; content is not empty."""
    return _HEAD.pack(len(content), zlib.crc32(content)) + content


def contents(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """What the frames of a file hold, the file being read in chunks of any size, up to one that is torn."""
    read = bytearray()
    for chunk in chunks:
        read += chunk
        at = 0
        while (content := _at(read, at)) is not None:
            if not content:
                return
            yield content
            at += _HEAD.size + len(content)
        del read[:at]


def _at(read: bytearray, start: int) -> bytes | None:
    """The frame that begins there; None when it is not whole yet, empty when it is torn."""
    begin = start + _HEAD.size
    if len(read) < begin:
        return None
    length, checksum = _HEAD.unpack_from(read, start)
    if len(read) < begin + length:
        return None
    content = bytes(read[begin : begin + length])
    return content if zlib.crc32(content) == checksum else b""
