"""Why shares changed: which measured value moved the most on the node whose share moved the most.

    moved(x, y) = |y - x| / (max(|x|, |y|) + 4 sigma)      sigma: of the earlier readings of the value

From or to 0 that is 1 without noise. What moved at the same time may be the cause, and need not be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from locality.training.share_changes import EVERY_STEPS
from locality.training.step_model import TO_SIGMA

LEAST_RATIO = 0.1
SIGMAS = 4.0
WINDOW = 16
"""Earlier readings that tell of noise, the latest ones."""
ENOUGH_FOR_NOISE = 3
UNEXPLAINED = "unexplained"
MEASURED = "the first steps were measured"


@dataclass(frozen=True)
class ShareChange:
    """From `step` on, each node computes so many samples of a batch; it was known at second `at_seconds` of the run.

    `gain` is by how much that makes a step shorter, as a predicted ratio, None where nothing was predicted. `is_guess`
    says that a node had made no step yet. `why` is for people, and empty as long as that is not known.
    """

    step: int
    at_seconds: float
    shares: Mapping[str, int]
    gain: float | None = None
    is_guess: bool = False
    why: str = ""


class Moved(NamedTuple):
    """A measured value that was something else before."""

    name: str
    before: float
    now: float

    def sentence(self, node: str) -> str:
        """For people.

        >>> Moved("free", 0.98, 0.21).sentence("a"), Moved("load", 0, 12345.678).sentence("a")
        ('free of a fell from 0.98 to 0.21', 'load of a rose from 0 to 1.235e+04')
        """
        went = "rose" if self.now > self.before else "fell"
        return f"{self.name} of {node} {went} from {self.before:.4g} to {self.now:.4g}"


def known_reason(before: ShareChange | None, now: ShareChange, judged_by: str) -> str:
    """Why shares changed where that needs no measured value; empty where it does.

    `judged_by` is what gave the first shares, "" for nothing.

    >>> first = ShareChange(0, 0.0, {"a": 4, "b": 4}, is_guess=True)
    >>> known_reason(None, first, "free"), known_reason(None, first, "")
    ('the first shares, by free', 'the first shares, all nodes alike')
    >>> known_reason(first, ShareChange(1, 0.1, {"a": 2, "b": 6}), "")
    'the first steps were measured'
    >>> known_reason(first, ShareChange(9, 0.9, {"a": 4, "c": 4}), "")
    'b left, c joined'
    >>> known_reason(first, ShareChange(60, 6.0, {"a": 1, "b": 7}), "")
    ''
    """
    if before is None:
        return f"the first shares, by {judged_by}" if judged_by else "the first shares, all nodes alike"
    gone, new = sorted(before.shares.keys() - now.shares.keys()), sorted(now.shares.keys() - before.shares.keys())
    if gone or new:
        return ", ".join([*(f"{node} left" for node in gone), *(f"{node} joined" for node in new)])
    return MEASURED if before.is_guess and now.step - before.step <= EVERY_STEPS else ""


def find_node(before: Mapping[str, int], now: Mapping[str, int]) -> str:
    """The node whose share moved the most, as a ratio; the first by name of several. Both are of the same nodes.

    >>> find_node({"a": 100, "b": 100, "c": 100}, {"a": 134, "b": 133, "c": 33})
    'c'
    """
    return max(sorted(now), key=lambda node: _ratio(before[node], now[node], 0.0))


def find_moved(
    before: Mapping[str, float], now: Mapping[str, float], earlier: Mapping[str, Sequence[float]]
) -> Moved | None:
    """The value that moved the most, by more than a tenth and than 4 sigma; the first by name of several.

    All three are of one node, by data name; `earlier` are readings up to `before`, the oldest first. A value that is
    missing before or now says nothing.

    >>> find_moved({"free": 0.9, "load": 1.0}, {"free": 0.2, "load": 1.2}, {})
    Moved(name='free', before=0.9, now=0.2)
    >>> find_moved({"load": 1.0}, {"load": 3.0}, {"load": [1.0, 4.0, 2.0, 0.5]}) is None
    True
    """
    noises = {name: SIGMAS * sigma(earlier.get(name, ())) for name in before.keys() & now.keys()}
    moved = {
        name: ratio
        for name, noise in noises.items()
        if abs(now[name] - before[name]) > noise and (ratio := _ratio(before[name], now[name], noise)) > LEAST_RATIO
    }
    if not moved:
        return None
    name = max(sorted(moved), key=lambda one: moved[one])
    return Moved(name, before[name], now[name])


def sigma(readings: Sequence[float]) -> float:
    """The noise of readings, by the median, so that a few hiccups do not pass for noise; 0 for too few to tell.

    >>> sigma([1.0, 2.0]), round(sigma([1.0, 1.1, 0.9, 1.0, 50.0]), 3)
    (0.0, 0.148)
    """
    latest = readings[-WINDOW:]
    if len(latest) < ENOUGH_FOR_NOISE:
        return 0.0
    middle = median(latest)
    return TO_SIGMA * median(abs(reading - middle) for reading in latest)


def _ratio(before: float, now: float, noise: float) -> float:
    """0 where nothing moved."""
    scale = max(abs(before), abs(now)) + noise
    return abs(now - before) / scale if scale else 0.0
