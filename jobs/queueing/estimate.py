"""When each of the waiting applications begins: an interval that holds with a probability of 80 %."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from math import isinf

import numpy as np

from jobs.queueing.replay import play
from jobs.queueing.run_times import Numbers, RunTimes
from jobs.queueing.scene import Scene
from jobs.queueing.stage import Stage

SEED = 20_260
MOST_WAITING = 100
"""Of those that wait, the first in order; about the others nothing is said."""
MOST_KNOWN = 1_000
"""Nodes and running applications of a cluster that is played forward."""
LAUNCH_SECONDS = 3.0
"""From room for an application until it has it: nodes tell YARN of themselves once a second."""
NEVER = "not known: nothing that runs now makes room for it when it ends"
TOO_MANY_BEFORE = f"not known: more than {MOST_WAITING} wait before it"
TOO_LARGE = f"not known: the cluster has more than {MOST_KNOWN:,} nodes or running applications"


@dataclass(frozen=True)
class Interval:
    """Seconds from now, at the earliest and at the latest."""

    earliest: float
    latest: float


def estimate(scene: Scene, seed: int = SEED) -> Mapping[str, Interval | str]:
    """The interval of each that waits, by its key, or why there is none.

    The queues are played forward again and again, each time with other run times. If the cluster behaves as one of
    those replays does, then what really happens is as likely to come at any place among the r replays in order. So with
    r + 1 = 10 k it lies between the k-th and the k-th last with a probability of 80 %.
    """
    if max(len(scene.nodes), len(scene.running)) > MOST_KNOWN:
        return {one.key: TOO_LARGE for one in scene.waiting}
    waiting = scene.waiting[:MOST_WAITING]
    known = Scene(scene.nodes, scene.queues, scene.running, waiting, scene.counts_all)
    found: dict[str, Interval | str] = {one.key: TOO_MANY_BEFORE for one in scene.waiting[MOST_WAITING:]}
    if waiting:
        count = _count(len(waiting) + len(scene.running))
        starts = np.sort(_starts(known, count, seed), axis=0)
        k = (count + 1) // 10
        for one, earliest, latest in zip(waiting, starts[k - 1], starts[-k], strict=True):
            found[one.key] = NEVER if isinf(latest) else Interval(float(earliest), float(latest) + LAUNCH_SECONDS)
    return found


def _count(applications: int) -> int:
    """How many replays: so few that all of them take about a tenth of a second, on most clusters less."""
    return 39 if applications <= 60 else 19 if applications <= 120 else 9


def _starts(scene: Scene, count: int, seed: int) -> Numbers:
    """When each begins, a row for each replay."""
    chances = np.random.default_rng(seed)
    left = [_draw(one.runs, one.elapsed, one.at_most, chances.random(count)) for one in scene.running]
    lasts = [_draw(one.runs, 0.0, one.at_most, chances.random(count)) for one in scene.waiting]
    stage, dice = Stage(scene), random.Random(seed)  # noqa: S311 nothing is kept secret by it
    return np.array([play(stage, [one[n] for one in left], [one[n] for one in lasts], dice) for n in range(count)])


def _draw(runs: RunTimes, elapsed: float, at_most: float | None, chances: Numbers) -> list[float]:
    left = runs.left(elapsed, chances)
    if at_most is not None:
        left = np.minimum(left, max(at_most - elapsed, 0.0))
    found: list[float] = left.tolist()
    return found
