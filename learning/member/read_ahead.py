"""One batch is read in a thread while the one before it is computed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from learning.errors import LearningError
from learning.member.group import Broken

LOOK_SECONDS = 0.1
"""Between two looks whether a batch is still wanted."""
LONGEST_SECONDS = 600.0
"""Of a read, from when its batch is wanted."""


class ReadAhead:
    """Calls `read` with the numbers of samples, one call at a time; at most one batch is kept that nobody has taken."""

    def __init__(self, read: Callable[[Sequence[int]], Any]) -> None:
        self._read = read
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="read ahead")
        self._expected: tuple[list[int], Future[Any]] | None = None
        self._hangs = False

    def expect(self, numbers: Sequence[int]) -> None:
        """Begin to read what is likely to be taken next; nothing for no numbers."""
        self._drop()
        if numbers:
            self._expected = list(numbers), self._thread.submit(self._read, numbers)

    def take(self, numbers: Sequence[int], is_over: Callable[[], bool] = lambda: False) -> Any:
        """These samples, which were read already if they were expected; whatever `read` raises.

        Broken when `is_over()` meanwhile. The call of `read` goes on: who takes the same samples again gets what it
        finds, and who takes others waits for its end. LearningError when that is not there after ten minutes.
        """
        if self._expected is None or self._expected[0] != list(numbers):
            self.expect(numbers)
        if self._expected is None:
            return self._read(numbers)
        found, until = self._expected[1], time.monotonic() + LONGEST_SECONDS
        while not wait([found], LOOK_SECONDS).done:
            if is_over():
                raise Broken("the generation is over")
            if time.monotonic() > until:
                self._hangs = True
                raise LearningError(
                    f"the data has not given {len(numbers)} samples within {LONGEST_SECONDS:.0f} s",
                    "look whether the place that it reads from answers",
                )
        self._expected = None
        try:
            return found.result()
        finally:
            del found  # an error knows this frame, and would keep itself and all that the read had in memory

    def close(self) -> None:
        """Wait for a call of `read` that has begun, as Python must not end amid one, but not for one that hangs."""
        self._drop()
        self._thread.shutdown(wait=not self._hangs)

    def _drop(self) -> None:
        if self._expected is not None:
            self._expected[1].cancel()
            self._expected = None
