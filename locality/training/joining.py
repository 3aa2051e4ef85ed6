"""Whether it pays to regroup for a process that would join, or a member that would leave.

A change pays if    (T(now) - T(then) - dT_comm) * steps_left > cost of regrouping

with T the time of a step at the best shares, and dT_comm what the exchange of gradients takes longer with so many more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from locality.training.shares import StepTime, divide, step_seconds
from locality.types import PlanError


@dataclass(frozen=True)
class Work:
    """What is left to do and what it takes.

    batch           samples of a global batch
    times, most     of every process: seconds of a step by its samples, and samples at most
    comm_seconds    of a step, by the number of members
    steps_left      of the run
    regroup_seconds that a change of members costs, 0 if there is one anyway
    """

    batch: int
    times: Mapping[str, StepTime]
    most: Mapping[str, int]
    comm_seconds: Callable[[int], float]
    steps_left: int
    regroup_seconds: float

    def seconds(self, members: Sequence[str]) -> float | None:
        """Of one step at the best shares; None if these members cannot hold the batch."""
        times = {member: self.times[member] for member in members}
        try:
            shares = divide(self.batch, times, self.most)
        except PlanError:
            return None
        return step_seconds(shares, times) + self.comm_seconds(len(times))


def find_wanted(members: Sequence[str], waiting: Sequence[str], work: Work, least: int, most: int) -> frozenset[str]:
    """The processes that are worth having: `members`, with the best that wait or without the slowest, if that pays.

    Several may join together where one alone would not be worth the cost.
    """
    now = work.seconds(members)
    if now is None:
        return frozenset([*members, *waiting])
    best, most_saved = frozenset(members), 0.0
    for others in _changes(members, waiting, work, least, most):
        then = work.seconds(others)
        saved = (now - then) * work.steps_left - work.regroup_seconds if then is not None else 0.0
        if saved > most_saved:
            best, most_saved = frozenset(others), saved
    return best


def _changes(
    members: Sequence[str], waiting: Sequence[str], work: Work, least: int, most: int
) -> list[tuple[str, ...]]:
    share = max(1, work.batch // max(1, len(members)))
    by_speed = sorted(waiting, key=lambda process: (work.times[process](share), process))
    slowest = sorted(members, key=lambda process: (-work.times[process](share), process))
    more = [(*members, *by_speed[:count]) for count in _counts(min(len(waiting), most - len(members)))]
    return more + [tuple(slowest[count:]) for count in _counts(len(members) - least)]


def _counts(most: int) -> list[int]:
    """1, 2, 4 ... and `most`: among hundreds of processes not every number is tried."""
    return sorted({2**power for power in range(max(most, 0).bit_length())} | {most}) if most > 0 else []
