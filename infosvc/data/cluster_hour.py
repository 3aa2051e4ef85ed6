"""What all nodes together had of something in the last hour, by the curves of each."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping

from infosvc.data.curves import STEPS, Curves, HourOfNodes, Numbers, plain
from infosvc.settings import Clock
from infosvc.state.current_values import STEP
from infosvc.wire.answers import ClusterHour
from infosvc.wire.records import Producer

RATIO = "ratio"
ALL_NODES = "*"  # in place of a node's name
KEPT_SECONDS = 5.0
MOST_KEPT = 200  # answers


class ClusterHours:
    """Adds up curves; an answer is kept for some seconds, because many pages ask for the same. Any thread may ask."""

    def __init__(self, curves: Curves, clock: Clock) -> None:
        self._curves = curves
        self._clock = clock
        self._kept: dict[tuple[str, str], tuple[float, ClusterHour]] = {}

    def hour(self, producer: Producer, of: Producer | None) -> ClusterHour:
        """The last hour of a name on all nodes, as a share of another name if one is given."""
        key, now = (producer.data_name, of.data_name if of else ""), self._clock.monotonic()
        until, answer = self._kept.get(key, (0.0, None))
        if answer is None or now >= until:
            answer = self._add_up(producer, of)
            if len(self._kept) >= MOST_KEPT:
                self._kept = {}
            self._kept[key] = (now + KEPT_SECONDS, answer)
        return answer

    def _add_up(self, producer: Producer, of: Producer | None) -> ClusterHour:
        hour = self._curves.hour_of_nodes(producer.data_name)
        if of is None:
            unit, numbers = producer.unit, together(hour, producer)
        else:
            unit, numbers = RATIO, share(hour, producer, self._curves.hour_of_nodes(of.data_name), of)
        name = of.data_name if of else None
        return ClusterHour(producer.data_name, unit, numbers, ALL_NODES, hour.since, STEP, hour.is_full, name)


def together(hour: HourOfNodes, producer: Producer) -> Numbers:
    """The sum over the nodes that have a number, for each step; None where none has."""
    sums, counts = [0.0] * STEPS, [0] * STEPS
    for numbers in _held(hour, producer).values():
        for step, number in enumerate(numbers):
            if number == number:  # not NaN
                sums[step] += number
                counts[step] += 1
    return tuple(plain(total) if count else None for total, count in zip(sums, counts, strict=True))


def share(hour: HourOfNodes, producer: Producer, of: HourOfNodes, of_producer: Producer) -> Numbers:
    """The sum of one name by that of another, for each step over the nodes that have both; None where none has.

    Of ratios it is their mean, weighted by the other name.
    """
    parts, wholes = _held(hour, producer), _held(of, of_producer)
    is_ratio = producer.unit == RATIO
    tops, bottoms = [0.0] * STEPS, [0.0] * STEPS
    for node in sorted(parts.keys() & wholes.keys()):
        for step, (part, whole) in enumerate(zip(parts[node], wholes[node], strict=True)):
            if part == part and whole == whole:
                tops[step] += part * whole if is_ratio else part
                bottoms[step] += whole
    return tuple(plain(top / bottom) if bottom else None for top, bottom in zip(tops, bottoms, strict=True))


def _held(hour: HourOfNodes, producer: Producer) -> Mapping[str, array[float]]:
    """The numbers of each node, of which one counts until the next comes, at most as long as its ttl."""
    longest = max(1, math.ceil(float(producer.ttl or 0.0) / STEP))
    return {node: _forward(numbers, longest) for node, numbers in hour.curves.items()}


def _forward(numbers: array[float], longest: int) -> array[float]:
    found = numbers[:]
    last, left = math.nan, 0
    for step, number in enumerate(numbers):
        if number == number:
            last, left = number, longest
        elif left > 0:
            found[step] = last
            left -= 1
    return found
