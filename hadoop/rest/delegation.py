"""What containers show HDFS instead of a ticket: the token that YARN has put into a file for them."""

from __future__ import annotations

import base64
import os
from pathlib import Path

_FILE = "HADOOP_TOKEN_FILE_LOCATION"
_HEAD = b"HDTS\x00"
"""What such a file begins with, and its version: that of Hadoop's own Writables."""
_KIND = b"HDFS_DELEGATION_TOKEN"


def find_token() -> str | None:
    """The token for HDFS of this container as WebHDFS takes it; None outside of containers, and without Kerberos."""
    file = os.environ.get(_FILE)
    try:
        return parse_token(Path(file).read_bytes()) if file else None
    except OSError:
        return None


def parse_token(content: bytes) -> str | None:
    """The first token for HDFS in a file of YARN's; None where there is none, or the file is something else.

    It holds the number of tokens, then of each its name, its identifier, its password, its kind and its service, before
    each of which stands how long it is.
    """
    if not content.startswith(_HEAD):
        return None
    try:
        count, at = _read_number(content, len(_HEAD))
        for _ in range(count):
            _, begin = _read_bytes(content, at)
            at, parts = begin, []
            for _ in range(4):
                part, at = _read_bytes(content, at)
                parts.append(part)
            if parts[2] == _KIND:
                return base64.urlsafe_b64encode(content[begin:at]).decode().rstrip("=")
    except IndexError:
        pass
    return None


def _read_bytes(content: bytes, at: int) -> tuple[bytes, int]:
    """What stands at a place behind its length, and where it ends."""
    length, begin = _read_number(content, at)
    if length < 0 or begin + length > len(content):
        raise IndexError("the file is cut off")
    return content[begin : begin + length], begin + length


def _read_number(content: bytes, at: int) -> tuple[int, int]:
    """A number as Hadoop's WritableUtils write it: itself in one byte, or behind a byte that tells how long it is."""
    first = content[at] - 256 if content[at] > 127 else content[at]
    if first >= -112:
        return first, at + 1
    length = -112 - first if first >= -120 else -120 - first
    number = int.from_bytes(content[at + 1 : at + 1 + length])
    return (number if first >= -120 else ~number), at + 1 + length
