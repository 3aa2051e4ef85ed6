"""When a slot is due: the arithmetic of phases, ticks and back-off, in seconds of a monotonic clock."""

from __future__ import annotations

import hashlib
import math

PATIENT_FAILURES = 3  # in a row, before the interval grows
MAX_BACK_OFF = 8  # times the interval
QUARANTINE_FAILURES = 10  # in a row


def node_phase(node_name: str) -> float:
    """A share of the interval, 0 <= share < 1, that is always the same for a node: nodes do not fire together.

    All slots of one interval on a node share it, so that their values leave the node in one batch.
    """
    return int.from_bytes(hashlib.sha256(node_name.encode()).digest()[:6], "big") / 2**48


def next_tick(now: float, interval: float, phase: float) -> float:
    """The first moment after `now` that lies a whole number of intervals from the moment `phase`."""
    tick = phase + interval * (math.floor((now - phase) / interval) + 1)
    return tick if tick > now else tick + interval  # rounding may have brought it back to now


def missed_ticks(now: float, interval: float, due: float) -> int:
    """How many further ticks have passed by the time that the one at `due` is served."""
    return max(math.floor((now - due) / interval), 0)


def back_off(failures: int) -> int:
    """How many intervals a slot waits after so many failures in a row.

    >>> [back_off(failures) for failures in range(8)]
    [1, 1, 1, 1, 2, 4, 8, 8]
    """
    return int(min(2 ** max(failures - PATIENT_FAILURES, 0), MAX_BACK_OFF))


def least_gap(interval: float) -> float:
    """Seconds that lie at least between two runs that changed inputs set off."""
    return max(0.2, interval / 10)
