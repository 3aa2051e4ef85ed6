"""Shares: how many samples of a global batch each member computes, so that the slowest of them ends soonest.

    minimise  T = max t_i(b_i) over the members with b_i > 0    subject to  sum b_i = B,  0 <= b_i <= m_i,  b_i whole

Each t_i is monotone: more samples never take less time. Then the least T is the B-th smallest of all t_i(1), ...,
t_i(m_i), and to give each next sample to whoever ends it first finds it. A member that is better left out gets nothing:
it is a standby, and costs nothing, while one that takes part pays the fixed part of its step.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping

from locality.types import PlanError

StepTime = Callable[[int], float]
"""Seconds of a step of 1 sample or more; monotone."""
_HALVINGS = 60
_BY_ONE = 4
"""So many samples for each member, or fewer, are given one by one."""


def divide(batch: int, times: Mapping[str, StepTime], most: Mapping[str, int]) -> dict[str, int]:
    """Shares of every member, `most` samples each at most; PlanError if there is no room for all.

    Among equal times the smaller share grows first, then the first by name, so the same input gives the same shares.

    >>> times = {"a": lambda b: 1.0 * b, "b": lambda b: 0.25 * b, "c": lambda b: 9 + 0.1 * b}
    >>> divide(10, times, dict.fromkeys(times, 10))
    {'a': 2, 'b': 8, 'c': 0}
    """
    most = {member: most.get(member, 0) for member in sorted(times)}
    _check(batch, most)
    if not batch:
        return most | dict.fromkeys(most, 0)
    shares = _give_most(batch, times, most)
    ends = [_next(member, shares[member], times) for member in most if shares[member] < most[member]]
    heapq.heapify(ends)
    for _ in range(batch - sum(shares.values())):
        _, share, member = heapq.heappop(ends)
        shares[member] = share + 1
        if shares[member] < most[member]:
            heapq.heappush(ends, _next(member, shares[member], times))
    return shares


def step_seconds(shares: Mapping[str, int], times: Mapping[str, StepTime]) -> float:
    """T: when the last of those with samples ends; 0 where nobody has any."""
    return max((times[member](share) for member, share in shares.items() if share), default=0.0)


def shrink(shares: Mapping[str, int], batch: int) -> dict[str, int]:
    """The shares of a batch that is shorter than usual, as the last of an epoch is: in the same ratios.

    A share is rounded down, the samples left over go to the largest remainders; nobody gets more than its usual share.

    >>> shrink({"a": 6, "b": 2, "c": 0}, 3)
    {'a': 2, 'b': 1, 'c': 0}
    """
    total = sum(shares.values())
    if not 0 <= batch <= total:
        raise PlanError(f"{batch} samples are no part of a batch of {total}")
    parts = {member: divmod(share * batch, total) if total else (0, 0) for member, share in shares.items()}
    left_over = batch - sum(whole for whole, _ in parts.values())
    larger = sorted(parts, key=lambda member: (-parts[member][1], member))[:left_over]
    return {member: whole + (member in larger) for member, (whole, _) in parts.items()}


def _check(batch: int, most: Mapping[str, int]) -> None:
    if batch < 0:
        raise PlanError(f"a batch of {batch} samples cannot be divided", remedy="it must have 0 or more")
    for member, count in most.items():
        if count < 0:
            raise PlanError(f"member {member} cannot compute at most {count} samples", remedy="give 0 or more")
    if sum(most.values()) < batch:
        raise PlanError(
            f"a batch of {batch} samples does not fit: all members compute at most {sum(most.values())} together",
            remedy="take a smaller batch, or more members",
        )


def _next(member: str, share: int, times: Mapping[str, StepTime]) -> tuple[float, int, str]:
    seconds = times[member](share + 1)
    if math.isnan(seconds) or seconds < 0:
        raise PlanError(f"member {member} would take {seconds} seconds for {share + 1} samples: that is not a time")
    return seconds, share, member


def _give_most(batch: int, times: Mapping[str, StepTime], most: Mapping[str, int]) -> dict[str, int]:
    """What all can do by a time that leaves few samples, or none: found by halving, so that large batches are quick."""
    low = dict.fromkeys(most, 0)
    early, late = 0.0, max(times[member](min(batch, count)) for member, count in most.items() if count)
    for _ in range(_HALVINGS):
        if batch - sum(low.values()) <= _BY_ONE * len(most) or not math.isfinite(late):
            break
        middle = (early + late) / 2
        done = {member: _done_by(middle, times[member], min(batch, count)) for member, count in most.items()}
        if sum(done.values()) <= batch:
            early, low = middle, done
        else:
            late = middle
    return low


def _done_by(seconds: float, time: StepTime, most: int) -> int:
    """The largest share that takes no longer."""
    return bisect_right(range(1, most + 1), seconds, key=time)
