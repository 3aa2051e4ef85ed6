"""How quickly one name of all nodes is read: one client after the other's answer, and eight at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle

from bench.info.figures import Found, quantile
from bench.info.server import close
from bench.info.wire import Address, Line, drive

CLIENTS = 8


def measure(address: Address, messages: Sequence[bytes], seconds: float) -> Found:
    """Three ways of reading, `seconds` each; every message asks for another name."""
    alone = time_reads(address, messages[:1], 1, seconds)
    same = time_reads(address, messages[:1], CLIENTS, seconds)
    mixed = time_reads(address, messages, CLIENTS, seconds)
    return {
        "read_p50_seconds": quantile(alone, 0.5),
        "read_p99_seconds": quantile(alone, 0.99),
        "reads_per_second": len(same) / seconds,
        "mixed_reads_per_second": len(mixed) / seconds,
    }


def time_reads(address: Address, messages: Sequence[bytes], clients: int, seconds: float) -> list[float]:
    """Seconds that each read took which ended in time, from the first byte sent to the last received.

    The first one counts also when it ended later.
    """
    lines = [Line(address) for _ in range(clients)]
    for line in lines:
        line.ask(messages[0])  # so that buffers have grown and connections are warm
    asked = cycle(messages)
    took: list[float] = []
    until = time.monotonic() + seconds

    def note(_line: Line, lasted: float) -> None:
        if time.monotonic() < until or not took:
            took.append(lasted)

    try:
        drive(lines, lambda _line: next(asked) if time.monotonic() < until else None, note)
    finally:
        close(lines)
    return took
