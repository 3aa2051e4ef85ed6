"""The values of one name as JSON, as many as one answer may hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


_MOST_ROW_BYTES = 500
"""Of a row without its text, which as JSON has _MOST_GROWTH times its bytes at most."""
_MOST_GROWTH = 6


def render(
    producer: Producer, rows: Sequence[tuple[str, Value]], now: float, wall: float, most: int, text_bytes: int
) -> Page:
    """Values by node, until the answer has `most` bytes; `now` in monotonic seconds, `wall` in Unix seconds.

    `text_bytes` is what all texts have: where all rows fit for sure, they are written at once, which is quicker.
    """
    fits = len(rows) * _MOST_ROW_BYTES + text_bytes * _MOST_GROWTH < most
    step = max(len(rows), 1) if fits else 1
    ttl = float(producer.ttl or 0.0)
    body = bytearray(msgspec.json.encode({"data_name": producer.data_name, "unit": producer.unit, "time": wall}))
    body[-1:] = b',"values":[]'
    stale, oldest = 0, math.inf
    last: str | None = None
    for begin in range(0, len(rows), step):
        if begin and len(body) >= most:
            last = rows[begin - 1][0]
            break
        piece = []
        for name, value in rows[begin : begin + step]:
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
            piece.append(Row(name, value.text, age, ttl, state, value.outcome._value_, value.reason))
        _append(piece, body)
    body += b"}"
    return Page(bytes(body), stale, oldest + ttl, last)


def _append(rows: list[Row], body: bytearray) -> None:
    """Write rows into the list at the end of `body`, behind those that are there."""
    is_first = body.endswith(b"[]")
    body[-2 if is_first else -1 :] = b"" if is_first else b","
    begin = len(body)
    _write(rows, body, -1)
    if not is_first:
        del body[begin]
