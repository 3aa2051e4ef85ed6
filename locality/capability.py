"""What a node can do by the speeds it has had, and how far to trust that.

Of a node's past jobs, newest first, job i ended a_i seconds ago and ran at x_i items per second:

    w_i = (1 - alpha)^i * 2^(-a_i / half-life)       forgets with every further job, and with time
    E = sum(w_i)                                     evidence, in jobs that have ended just now
    C = sum(w_i * x_i) / E                           capability: moving average (EWMA; Roberts 1959)
    s = sqrt(sum(w_i * (x_i - C)^2) / E)             spread
    Z = E / (E + 1 + (s / (tau * C))^2)              credibility: n / (n + k) (Buehlmann 1967)
    confidence = Z0 + (1 - Z0) * Z

A node that ran nothing yet is judged by a measure m that all nodes have, on the scale of the nodes k that are known:

    C = m * median(C_k / m_k)                        confidence = Z0 * n / (n + 1), n nodes known

So confidence lies between 0 and 1, and no guess is trusted more than any speed that was seen.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

ALPHA = 0.3
"""What the newest job counts in a long series of jobs."""
HALF_LIFE_SECONDS = 7 * 86_400.0
SPREAD_RATIO = 0.2
"""tau: where the spread is this share of the speed, a single job says half as much beside what is not known."""
EPSILON = sys.float_info.epsilon
GUESS_CONFIDENCE = 0.1
"""Z0: the most that a guess by other nodes is trusted, and the least that a speed that was seen is."""


class Sample(NamedTuple):
    """A job that ended `age_seconds` ago (before 0: now, clocks differ) and ran at `items_per_second`."""

    age_seconds: float
    items_per_second: float


@dataclass(frozen=True)
class Estimate:
    """A capability, in what it was measured in, with its confidence from 0 to 1.

    `count` jobs were seen, 0 for a guess; their `spread`, in the unit of the value, is None for fewer than two.
    """

    value: float
    confidence: float
    count: int = 0
    spread: float | None = None


def from_jobs(samples: Iterable[Sample]) -> Estimate | None:
    """The estimate from a node's own jobs, in any order; None where there are none.

    ValueError names an age that is not finite, or a speed that is not a finite number above 0.
    """
    jobs = sorted(check_samples(samples), key=lambda sample: sample.age_seconds)
    if not jobs:
        return None
    # Beside the newest job, so that no age makes all of them vanish; what is lost in rounding beside it is left out.
    newest = jobs[0].age_seconds
    weights = [(1 - ALPHA) ** rank * _weight(job.age_seconds - newest) for rank, job in enumerate(jobs)]
    weighed = [(weight, job.items_per_second) for weight, job in zip(weights, jobs, strict=True) if weight > EPSILON]
    total = math.fsum(weight for weight, _ in weighed)
    value = math.fsum(weight / total * speed for weight, speed in weighed)
    variation = math.sqrt(math.fsum(weight / total * (speed / value - 1) ** 2 for weight, speed in weighed))
    credibility = _credibility(total * _weight(newest), variation)
    confidence = GUESS_CONFIDENCE + (1 - GUESS_CONFIDENCE) * credibility
    return Estimate(value, confidence, len(jobs), variation * value if len(jobs) > 1 else None)


def from_others(measure: float, known: Sequence[tuple[float, float]]) -> Estimate | None:
    """The guess for a node by its own `measure`, 0 or more, and each known node's (speed, measure).

    A known node gives a scale if both are above 0; None where none does. ValueError: the measure is not a capability.
    """
    if not (math.isfinite(measure) and measure >= 0):
        raise ValueError(f"the measure {measure} is not a capability: it must be a finite number of 0 or more")
    scales = [speed / other for speed, other in known if other > 0 and 0 < speed / other < math.inf]
    if not scales:
        return None
    return Estimate(measure * median(scales), GUESS_CONFIDENCE * len(scales) / (len(scales) + 1))


def guess(node: str, speeds: Mapping[str, float], measures: Mapping[str, float]) -> Estimate | None:
    """The same for one node, by name: the `speeds` of those that ran something, the `measures` of all that have one."""
    known = [(speeds[other], measures[other]) for other in speeds.keys() & measures.keys()]
    return from_others(measures[node], known) if node in measures else None


def middle(speeds: Iterable[float]) -> Estimate:
    """The guess for a node of which there is no measure: the median of the speeds of others, at least one."""
    known = list(speeds)
    return Estimate(median(known), GUESS_CONFIDENCE * len(known) / (len(known) + 1))


def freshness(age_seconds: float, ttl_seconds: float) -> float:
    """The confidence in something measured once: 1 when it is new, falling evenly to 0 where it is stale."""
    return min(max(1 - age_seconds / ttl_seconds, 0.0), 1.0)


def check_samples(samples: Iterable[Sample]) -> list[Sample]:
    """The same with no age below 0; ValueError as of `from_jobs`."""
    return [_check_sample(sample) for sample in samples]


def _check_sample(sample: Sample) -> Sample:
    if not math.isfinite(sample.age_seconds):
        raise ValueError(f"the age {sample.age_seconds} is not allowed: it must be a finite number of seconds")
    if not (math.isfinite(sample.items_per_second) and sample.items_per_second > 0):
        raise ValueError(f"{sample.items_per_second} is not a speed: it must be a finite number above 0")
    return Sample(max(sample.age_seconds, 0.0), sample.items_per_second)


def _weight(age_seconds: float) -> float:
    return float(2 ** (-age_seconds / HALF_LIFE_SECONDS))


def _credibility(evidence: float, variation: float) -> float:
    return float(evidence / (evidence + 1 + (variation / SPREAD_RATIO) ** 2))
