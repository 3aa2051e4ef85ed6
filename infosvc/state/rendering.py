"""The values of one name as JSON, as many as one answer may hold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from infosvc.state.value import Value
from infosvc.wire.records import Outcome, Producer


class Row(msgspec.Struct, gc=False):
    """One value as the wire shows it."""

    node_name: str
    data_value: str | None
    age: float | None
    ttl: float
    state: str
    outcome: str
    reason: str | None


class Page(NamedTuple):
    """An answer in bytes: how many of its values are stale, and when in monotonic seconds the next one will be.

    `last` is the last node in it, None when no others follow.
    """

    body: bytes
    stale: int
    flips: float
    last: str | None


_write = msgspec.json.Encoder().encode_into


def render(producer: Producer, rows: Iterable[tuple[str, Value]], now: float, wall: float, most: int) -> Page:
    """Values by node, until the answer has `most` bytes; `now` in monotonic seconds, `wall` in Unix seconds."""
    ttl = float(producer.ttl or 0.0)
    body = bytearray(msgspec.json.encode({"data_name": producer.data_name, "unit": producer.unit, "time": wall}))
    body[-1:] = b',"values":['
    stale, oldest = 0, math.inf
    last: str | None = None
    for name, value in rows:
        if last is not None and len(body) >= most:
            break
        measured = value.measured
        # What state_of says, in place: a name has a thousand rows, and this is what a read costs.
        if value.outcome is not Outcome.OK and value.outcome is not Outcome.NO_DATA:
            state = "failed"
        elif measured is None or now - measured > ttl:
            state = "stale"
            stale += 1
        else:
            state = "fresh"
            if measured < oldest:
                oldest = measured
        age = None if measured is None else round(now - measured, 3) if now > measured else 0.0
        _write(Row(name, value.text, age, ttl, state, value.outcome._value_, value.reason), body, -1)
        body += b","
        last = name
    else:
        last = None
    if body.endswith(b","):
        del body[-1:]
    body += b"]}"
    return Page(bytes(body), stale, oldest + ttl, last)
