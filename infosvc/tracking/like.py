"""LIKE of SQL without a pattern that can take long: `%` stands for any text, `_` for one character."""

from __future__ import annotations

import re
from functools import lru_cache


def matches(text: str, pattern: str) -> bool:
    """Whether all of a text is like a pattern; the time is at most their lengths multiplied.

    >>> matches("resnet-50", "res%-5_"), matches("resnet", "net")
    (True, False)
    """
    parts = pattern.split("%")
    if len(parts) == 1:
        return len(text) == len(pattern) and _is_at(text, pattern, 0)
    first, last = parts[0], parts[-1]
    end = len(text) - len(last)
    if end < len(first) or not _is_at(text, first, 0) or not _is_at(text, last, end):
        return False
    place = len(first)
    for part in parts[1:-1]:  # the first place that is right leaves most for those that follow
        place = _find(text, part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


def _find(text: str, part: str, start: int, end: int) -> int:
    """The first place from `start` on where a part without `%` stands before `end`, -1 when it does not."""
    if "_" not in part:
        return text.find(part, start, end)
    found = _expression(part).search(text, start, end)
    return found.start() if found else -1


def _is_at(text: str, part: str, place: int) -> bool:
    return _expression(part).match(text, place) is not None


@lru_cache(maxsize=64)
def _expression(part: str) -> re.Pattern[str]:
    """What finds a part, which has a fixed length: so the search never goes back."""
    return re.compile(".".join(map(re.escape, part.split("_"))), re.DOTALL)
