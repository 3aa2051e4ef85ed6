"""What one name was on one node over a window, in numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from infosvc.state.value import number_of
from infosvc.wire.answers import History


def summary(
    data_name: str, node_name: str, unit: str, window: tuple[float, float], points: Sequence[tuple[float, str]]
) -> History:
    """Statistics of the points that are numbers, and all points; `window` and points in Unix seconds."""
    numbers = sorted(number for _, text in points if (number := number_of(text)) is not None)
    history = History(data_name, node_name, unit, *window, count=len(points), points=tuple(points))
    if not numbers:
        return history
    return History(
        data_name,
        node_name,
        unit,
        *window,
        count=len(points),
        min=numbers[0],
        max=numbers[-1],
        mean=mean(numbers),
        p50=percentile(numbers, 0.50),
        p90=percentile(numbers, 0.90),
        p99=percentile(numbers, 0.99),
        points=tuple(points),
    )


def mean(numbers: Sequence[float]) -> float:
    """The mean, also of numbers whose sum is larger than any float."""
    try:
        return math.fsum(numbers) / len(numbers)
    except OverflowError:
        return statistics.mean(numbers)  # exact, and a thousand times slower


def percentile(numbers: Sequence[float], share: float) -> float:
    """The number below which `share` (0 to 1) of the sorted numbers lie, linear between neighbours."""
    place = share * (len(numbers) - 1)
    lower = math.floor(place)
    upper = min(lower + 1, len(numbers) - 1)
    span, part = numbers[upper] - numbers[lower], place - lower
    if math.isinf(span):  # farther apart than any float
        return numbers[lower] * (1 - part) + numbers[upper] * part
    return numbers[lower] + span * part
