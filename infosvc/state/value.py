"""One value as it is kept, and what can be said of it."""

from __future__ import annotations

import math

import msgspec

from infosvc.wire.records import Outcome, State


class Value(msgspec.Struct, frozen=True, gc=False):
    """One row of t_Data; `measured` and `ran` are monotonic seconds, `measured` is None as long as no value came."""

    text: str | None
    measured: float | None
    outcome: Outcome
    reason: str | None
    ran: float
    duration: float | None = None
    skipped: int = 0
    sequence: int = 1


def state_of(outcome: Outcome, age: float | None, ttl: float) -> State:
    """A failed last run outweighs age: the old value is still shown, but a reader must know."""
    if outcome is not Outcome.OK and outcome is not Outcome.NO_DATA:
        return State.FAILED
    return State.STALE if age is None or age > ttl else State.FRESH


def size_of(text: str | None) -> int:
    """The bytes of a text in UTF-8."""
    if text is None:
        return 0
    return len(text) if text.isascii() else len(text.encode())


def number_of(text: str | None) -> float | None:
    """A value as a finite number, None when it is not a number."""
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
