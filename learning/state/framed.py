"""A description and what it describes, in one piece.

8 bytes: length of the description | description, as JSON | the rest

Spaces behind the description let the rest begin at a multiple of 16 bytes, so that numbers can be used in place.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Any

ALIGNED = 16
_LENGTH = struct.Struct("<Q")


def frame(description: Any, rest: Iterable[Any], before: bytes = b"") -> bytes:
    """Both as bytes; `rest` are pieces of bytes, and `before` is put before it all."""
    told = json.dumps(description).encode()
    told += b" " * (-(_LENGTH.size + len(told)) % ALIGNED)
    return b"".join([before, _LENGTH.pack(len(told)), told, *rest])


def unframe(content: bytes | bytearray | memoryview) -> tuple[Any, memoryview]:
    """The description, and the rest without copying it; ValueError or RecursionError when it is something else."""
    if len(content) < _LENGTH.size:
        raise ValueError(f"{len(content)} bytes are no state")
    (length,) = _LENGTH.unpack_from(content)
    begin = _LENGTH.size + length
    if len(content) < begin:
        raise ValueError(f"a description of {length} bytes is cut off")
    return json.loads(bytes(content[_LENGTH.size : begin])), memoryview(content)[begin:]
