"""Logs in pieces of whole lines."""

from __future__ import annotations

MOST_BYTES = 256 * 1024
"""Of one answer."""


def whole_lines(content: bytes, most: int, ended: bool) -> bytes:
    """The lines of `content` that are complete, `most` bytes at most; what stands at an end nobody completes as well.

    >>> whole_lines(b"one\\ntw", 100, False)
    b'one\\n'
    """
    if ended and len(content) <= most:
        return content
    shown = content[:most]
    end = shown.rfind(b"\n") + 1
    if end == 0 and len(content) > most:  # a line that is longer than a piece must not stop what follows
        return shown
    return shown[:end]
