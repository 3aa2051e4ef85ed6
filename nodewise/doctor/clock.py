"""Compares the clocks of the servers with this machine's."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

from nodewise.doctor.finding import Finding, fail, ok, skip, warn

WARN_SECONDS = 5.0
FAIL_SECONDS = 60.0


def offset(date: str | None, now: float | None = None) -> float | None:
    """Seconds by which the clock behind an HTTP `Date` is ahead of ours; None when it is not a date.

    The header leaves out the fraction of the second, so the middle of that second is the best guess.
    """
    ours = time.time() if now is None else now
    try:
        return None if date is None else parsedate_to_datetime(date).timestamp() + 0.5 - ours
    except ValueError:
        return None


def clock(offsets: dict[str, float]) -> Finding:
    """Whether tokens expire and ages grow at the same moment everywhere; `offsets` by server, in seconds."""
    if not offsets:
        return skip("clock", "nothing answered that tells its time")
    who, worst = max(offsets.items(), key=lambda item: abs(item[1]))
    if abs(worst) <= WARN_SECONDS:
        return ok("clock", f"within {WARN_SECONDS:.0f} s of {', '.join(offsets)}")
    what = f"the clock of the {who} is {abs(worst):,.0f} s {'ahead of' if worst > 0 else 'behind'} this machine's"
    remedy = "let both follow a time server: `timedatectl set-ntp true`, and see `timedatectl timesync-status`"
    return (fail if abs(worst) > FAIL_SECONDS else warn)("clock", what, remedy)
