"""Has threads and programs of tests stand still at random: .venv/bin/python -m pytest -p tests.shaking tests/jobs.

A busy machine does so now and then. A test that takes an order of threads for granted fails here soon, and otherwise
once in many whole checks. The pauses of a run follow from SHAKING_SEED, which it prints; a test still meets others when
its threads run in another order.
"""

from __future__ import annotations

import _thread
import os
import queue
import random
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

LONGEST_SECONDS = 0.5
"""Of one pause."""
TEST_SECONDS = 2.5
"""Of all pauses of a test; one with many threads would not end in time."""
PROGRAMS = 0.3
"""Of how many programs stand still as they begin."""
SEED = os.environ.get("SHAKING_SEED") or str(random.randrange(1 << 32))


class Pauses:
    """Those of a test, of which none is taken between tests."""

    def __init__(self) -> None:
        self._chance = random.Random(SEED)
        self._sleep = time.sleep  # tests exchange it
        self._left = 0.0

    def allow(self, seconds: float) -> None:
        """Take so many from now on."""
        self._left = seconds

    def is_due(self, chance: float) -> bool:
        """Whether to stand still, so often."""
        return self._left > 0 and self._chance.random() < chance

    def take(self, longest: float = LONGEST_SECONDS) -> None:
        """Stand still."""
        seconds = self._chance.uniform(0, longest)
        self._left -= seconds
        self._sleep(seconds)


PAUSES = Pauses()


def pytest_report_header() -> str:
    """Name the seed."""
    return f"shaken by SHAKING_SEED={SEED}"


def pytest_runtest_setup() -> None:
    """Allow the pauses of one more test."""
    PAUSES.allow(TEST_SECONDS)


def pytest_runtest_logfinish() -> None:
    """End its pauses."""
    PAUSES.allow(0.0)


def shake(owner: Any, name: str, before: float = 0.0, after: float = 0.0, is_of_main: bool = True) -> None:
    """Pause before and after calls of a method, so often; the main thread only if it `is_of_main`, too."""
    usual: Callable[..., Any] = getattr(owner, name)

    def shaken(*words: Any, **more: Any) -> Any:
        is_shaken = is_of_main or threading.current_thread() is not threading.main_thread()
        if is_shaken and PAUSES.is_due(before):
            PAUSES.take()
        try:
            return usual(*words, **more)
        finally:
            if is_shaken and PAUSES.is_due(after):
                PAUSES.take()

    setattr(owner, name, shaken)


def shake_programs() -> None:
    """Stop programs as they begin, and have them go on a moment later."""
    usual = subprocess.Popen.__init__

    def start(program: Any, *words: Any, **more: Any) -> None:
        usual(program, *words, **more)
        if PAUSES.is_due(PROGRAMS):
            with suppress(OSError):
                os.kill(program.pid, signal.SIGSTOP)
                _thread.start_new_thread(go_on, (program.pid,))

    def go_on(pid: int) -> None:
        PAUSES.take(2 * LONGEST_SECONDS)
        with suppress(OSError):
            os.kill(pid, signal.SIGCONT)

    subprocess.Popen.__init__ = start  # type: ignore[assignment, method-assign]


class ShakenQueue(queue.SimpleQueue[Any]):
    """In the place of the one of C, whose methods cannot be exchanged."""


shake(threading.Thread, "_bootstrap_inner", before=0.2)
shake(threading.Thread, "run", before=0.3, after=0.3)
shake(threading.Thread, "start", after=0.15)
shake(threading.Event, "wait", after=0.3, is_of_main=False)
shake(threading.Event, "set", after=0.1)
shake(queue.Queue, "get", after=0.3, is_of_main=False)
shake(ShakenQueue, "get", after=0.3, is_of_main=False)
shake(selectors.DefaultSelector, "select", after=0.05, is_of_main=False)
shake(socket.socket, "accept", after=0.1)
shake_programs()
queue.SimpleQueue = ShakenQueue  # type: ignore[misc]
