"""What commands share that look again and again until somebody ends them: how often, what passes, how to leave."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

SHORTEST, LONGEST = 0.1, 3600.0


def often(_context: click.Context, _option: click.Parameter, seconds: float | None) -> float | None:
    """The seconds between two looks, when they are neither too few nor too many; for the callback of an option."""
    if seconds is not None and not SHORTEST <= seconds <= LONGEST:
        raise click.BadParameter(f"{seconds:g} s is too often or too seldom: give {SHORTEST:g} to {LONGEST:g} seconds")
    return seconds


@contextmanager
def signals_leave() -> Iterator[None]:
    """SIGTERM and the loss of the terminal end the command in the same way as Ctrl-C, each with its own exit status."""
    ends = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, _frame: sys.exit(128 + number)) for number in ends}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
