"""Values, moments and numbers as text in a terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

BARS = "▁▂▃▄▅▆▇█"
LINE_WIDTH = 60


def plain(item: Any) -> str:
    """Text of one line, empty for none; what a node or a user wrote cannot steer the terminal."""
    text = "" if item is None else str(item)
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def moment(unix: float | None, none: str = "never") -> str:
    """Unix seconds as local date and time; `none` for none."""
    return none if unix is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix))


def sparkline(points: Sequence[tuple[float, float | str]], since: float, until: float, width: int = LINE_WIDTH) -> str:
    """The numbers among points (place, number) as bars from the place `since` to `until`; a blank where there is none.

    Places are moments, or whatever else goes on.

    >>> sparkline([(0, "1"), (30, "2"), (59, "8"), (40, "no number")], 0, 60).strip()[0]
    '▁'
    """
    sums: list[list[float]] = [[] for _ in range(width)]
    for at, said in points:
        place = int((at - since) / max(until - since, 1e-9) * width)
        try:
            sums[min(max(place, 0), width - 1)].append(float(said))
        except ValueError:
            continue
    means = [sum(found) / len(found) if found else None for found in sums]
    there = [mean for mean in means if mean is not None]
    if not there:
        return ""
    least, span = min(there), max(there) - min(there)
    top = len(BARS) - 1 if 0 < span < math.inf else 0
    return "".join(" " if mean is None else BARS[round((mean - least) / span * top) if top else 0] for mean in means)
