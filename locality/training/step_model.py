"""How long a member computes for a step of so many samples, learned from the steps that it made.

    t(b) = a + c * b      a: seconds of any step, c: seconds of each sample; t(0) = 0, a standby computes nothing

The line is fitted by least squares over the last 16 readings, with a >= 0 and c > 0. A reading is the time of
computing alone: what a member waits for others says nothing of itself.

A step is a straight line only over sizes that are near one another. So a share may not grow beyond twice what was
seen (`reach`), and readings that do not tell a from c keep the ratio of the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import NamedTuple

WINDOW = 16
"""Readings that count, the latest ones."""
OFF_RATIO = 0.25
OFF_SIGMAS = 4.0
FIRST_NOISE = 0.05
"""sigma / t where there are too few readings to tell."""
ENOUGH_FOR_NOISE = 4
NEAR_RATIO = 1.25
"""Sizes that differ less are the same size: they do not tell a from c, and what was seen at one holds at the other."""
SLOPE_ERRORS = 3.0
"""A slope that is fewer standard errors above 0 is noise."""
GROWTH_RATIO = 2.0
AGEING = 0.97
"""Each step takes a standby for so much of its time: one that needs twice what a step takes is tried after 23 steps."""
LEAST_REACH = 32
TO_SIGMA = 1.4826
"""Of a normal distribution, sigma / median absolute deviation."""


class Reading(NamedTuple):
    """A step: `samples`, above 0, in `seconds` of computing."""

    samples: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Line:
    """t(b) = `fixed_seconds` + `sample_seconds` * b."""

    fixed_seconds: float
    sample_seconds: float

    def seconds(self, samples: int) -> float:
        """Of a step of so many samples; 0 for none.

        >>> Line(2.0, 0.5).seconds(4), Line(2.0, 0.5).seconds(0)
        (4.0, 0.0)
        """
        return self.fixed_seconds + self.sample_seconds * samples if samples else 0.0


@dataclass(frozen=True, slots=True)
class StepModel:
    """What is known of one member and one program.

    `noise` is sigma / t of a reading. `off` is the last reading, as it was measured, if it was off; `off_side` is 1
    when it took too long, -1 when it took too short, else 0.
    """

    line: Line
    noise: float = FIRST_NOISE
    readings: tuple[Reading, ...] = ()
    off: Reading | None = None
    off_side: int = 0

    @classmethod
    def guess(cls, samples_per_second: float) -> StepModel:
        """Before the first step: a line through zero. ValueError if the speed is not a finite number above 0."""
        if not (math.isfinite(samples_per_second) and samples_per_second > 0):
            raise ValueError(f"{samples_per_second} samples per second is not a speed: it must be finite and above 0")
        return cls(Line(0.0, 1 / samples_per_second))

    def seconds(self, samples: int) -> float:
        """Predicted seconds of computing."""
        return self.line.seconds(samples)

    def uncertainty(self) -> float:
        """sigma / t of what the line predicts at sizes that were seen."""
        return self.noise / math.sqrt(max(1, len(self.readings)))

    def reach(self) -> int | None:
        """Samples up to which the line is to be trusted; None before the first reading, when nothing is known."""
        if not self.readings:
            return None
        return max(LEAST_REACH, math.floor(GROWTH_RATIO * max(reading.samples for reading in self.readings)))

    def see(self, samples: int, seconds: float) -> StepModel:
        """Learn from one step. One without samples tells nothing, and what is known grows old.

        A reading is off when it takes 1 + max(25 %, 4 sigma) times as long as the line says, or that part of it. Two in
        a row, both too long or both too short, are a change of the node: they become all of its past, or the second
        alone where they differ by as much, as the change then came amid the first. A single one is a hiccup, and counts
        only as far as a reading may differ (Huber 1964). A size unlike all that were seen cannot be off.
        """
        if not samples:
            return self._grow_old()
        if samples < 0 or not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"{samples} samples in {seconds} seconds is not the time of a step")
        reading = Reading(samples, seconds)
        if not any(_is_near(samples, known.samples) for known in self.readings):
            return self._fit((*self.readings, reading), None, 0)
        expected = self.line.seconds(samples)
        ratio = 1 + max(OFF_RATIO, OFF_SIGMAS * self.noise)
        longest, shortest = expected * ratio, expected / ratio
        side = (seconds > longest) - (seconds < shortest)
        if side and side == self.off_side and self.off is not None:
            before, now = self.off.seconds / self.line.seconds(self.off.samples), seconds / expected
            is_whole = max(before, now) <= ratio * min(before, now)
            return self._fit((self.off, reading) if is_whole else (reading,), None, 0)
        usual = Reading(samples, min(max(seconds, shortest), longest))
        return self._fit((*self.readings, usual), reading if side else None, side)

    def _grow_old(self) -> StepModel:
        """A standby is taken for a little faster after each step, so that it is tried again some day."""
        line = Line(AGEING * self.line.fixed_seconds, AGEING * self.line.sample_seconds)
        readings = tuple(Reading(samples, AGEING * seconds) for samples, seconds in self.readings)
        return replace(self, line=line, readings=readings, off=None, off_side=0)

    def _fit(self, readings: tuple[Reading, ...], off: Reading | None, side: int) -> StepModel:
        latest = readings[-WINDOW:]
        line = fit(latest, self.line)
        return replace(self, line=line, noise=_noise(latest, line, self.noise), readings=latest, off=off, off_side=side)


def fit(readings: Sequence[Reading], known: Line) -> Line:
    """The line a, c that makes sum((t - a - c b)^2) the least, with a >= 0.

    Where the sizes are all near one another, or the slope is not clear of noise, no fit tells a from c, and a line
    without a slope would make further samples free: then `known` is stretched, which keeps its ratio of the two.

    >>> fit([Reading(10, 7.0), Reading(20, 12.0), Reading(40, 22.0)], Line(0.0, 1.0))
    Line(fixed_seconds=2.0, sample_seconds=0.5)
    >>> fit([Reading(10, 30.0)], Line(1.0, 0.2))
    Line(fixed_seconds=10.0, sample_seconds=2.0)
    """
    if _is_near(min(readings).samples, max(readings).samples):
        return _stretch(readings, known)
    sizes, times = [reading.samples for reading in readings], [reading.seconds for reading in readings]
    size, time = fmean(sizes), fmean(times)
    variation = math.fsum((b - size) ** 2 for b in sizes)
    slope = math.fsum((b - size) * (t - time) for b, t in readings) / variation
    fixed = time - slope * size
    rest = math.fsum((t - fixed - slope * b) ** 2 for b, t in readings)
    error = math.sqrt(rest / max(len(readings) - 2, 1) / variation)
    if slope <= 0 or slope < SLOPE_ERRORS * error:
        return _stretch(readings, known)
    return Line(fixed, slope) if fixed >= 0 else _stretch(readings, Line(0.0, 1.0))


def _stretch(readings: Sequence[Reading], known: Line) -> Line:
    """`known` times the factor that makes the squares the least."""
    pairs = [(known.seconds(samples), seconds) for samples, seconds in readings]
    factor = math.fsum(p * t for p, t in pairs) / math.fsum(p * p for p, _ in pairs)
    return Line(factor * known.fixed_seconds, factor * known.sample_seconds)


def _noise(readings: Sequence[Reading], line: Line, known: float) -> float:
    """By the median, so that a few hiccups do not pass for noise."""
    if len(readings) < ENOUGH_FOR_NOISE:
        return known
    return TO_SIGMA * median(abs(seconds / line.seconds(samples) - 1) for samples, seconds in readings)


def _is_near(one: int, other: int) -> bool:
    low, high = sorted((one, other))
    return high < NEAR_RATIO * low
