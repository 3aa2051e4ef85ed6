"""A description and what it describes, in one piece.

8 bytes: length of the description | description, as JSON | the rest
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Any

_LENGTH = struct.Struct("<Q")


def frame(description: Any, rest: Iterable[Any]) -> bytes:
    """Both as bytes; `rest` are pieces of bytes."""
    told = json.dumps(description).encode()
    return b"".join([_LENGTH.pack(len(told)), told, *rest])


def unframe(content: bytes) -> tuple[Any, memoryview]:
    """The description, and the rest without copying it; ValueError or RecursionError when it is something else."""
    if len(content) < _LENGTH.size:
        raise ValueError(f"{len(content)} bytes are no state")
    (length,) = _LENGTH.unpack_from(content)
    begin = _LENGTH.size + length
    if len(content) < begin:
        raise ValueError(f"a description of {length} bytes is cut off")
    return json.loads(content[_LENGTH.size : begin]), memoryview(content)[begin:]
