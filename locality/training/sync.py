"""How often members average: at each step, or on thin networks after H steps that each makes alone.

Averaging at each step is exact. With H > 1 the result depends on who computes what; members exchange 1 / H of the
bytes, and what one computes with is at most one round old. Each takes its share of each batch of the round, as without
rounds: so members of any speeds end together, and have made as many steps.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from locality.types import PlanError

MOST_LOCAL_STEPS = 1024
MOST_AUTO_STEPS = 8
"""A round tells how good the network is when it ends, and a network that is good again is to be noticed in 10 steps."""
THIN_RATIO = 1.0
GOOD_RATIO = 0.5
"""T_comm / T_compute of one step above which, and below which, a network counts as thin and as good."""
WANTED_RATIO = 0.5
"""T_comm / T_compute of a round."""
THIN_IN_A_ROW = 3


class Sync(NamedTuple):
    """`local_steps` between two averages, 1: exact; with `is_auto` that is where it begins."""

    local_steps: int
    is_auto: bool = False


def parse_sync(text: str) -> Sync:
    """What a user writes: `every`, `local:H` or `auto`; PlanError for anything else.

    >>> parse_sync("local:16"), parse_sync("auto")
    (Sync(local_steps=16, is_auto=False), Sync(local_steps=1, is_auto=True))
    """
    if text == "every":
        return Sync(1)
    if text == "auto":
        return Sync(1, is_auto=True)
    found = re.fullmatch(r"local:(\d{1,6})", text)
    if found and 1 <= int(found[1]) <= MOST_LOCAL_STEPS:
        return Sync(int(found[1]))
    raise PlanError(
        f"members cannot average by {text!r}",
        remedy=f"write every, auto or local:H, H from 1 to {MOST_LOCAL_STEPS}",
    )


@dataclass(frozen=True, slots=True)
class AutoSync:
    """Chooses H from what was measured: more than 1 when the network is thin three times in a row, 1 when it is good.

    H is the power of two that brings the exchange down to half of a round's computing, 8 at most. It goes
    back to 1 by one reading, that is after one round, because a round may be long and 1 is exact.
    """

    local_steps: int = 1
    thin_in_a_row: int = 0

    def see(self, comm_seconds: float, compute_seconds: float) -> AutoSync:
        """Learn from one round: T_comm of its average, and T_compute of one step, the longest of all members.

        T_comm is what the member waits that comes last; what others wait is mostly for it.
        """
        if not (math.isfinite(comm_seconds) and comm_seconds >= 0 and math.isfinite(compute_seconds)) or (
            compute_seconds <= 0
        ):
            raise ValueError(f"{comm_seconds} s of exchange after {compute_seconds} s of computing is not a reading")
        ratio = comm_seconds / compute_seconds
        if ratio < GOOD_RATIO:
            return AutoSync()
        if self.local_steps > 1:
            return AutoSync(max(self.local_steps, _round_length(ratio)))
        if ratio <= THIN_RATIO:
            return AutoSync()
        if self.thin_in_a_row + 1 < THIN_IN_A_ROW:
            return replace(self, thin_in_a_row=self.thin_in_a_row + 1)
        return AutoSync(_round_length(ratio))


def _round_length(ratio: float) -> int:
    return min(MOST_AUTO_STEPS, int(2 ** math.ceil(math.log2(ratio / WANTED_RATIO))))
