"""When a run stores its state: rank 0 every so many seconds and after the last step, beside the work."""

from __future__ import annotations

import time
from collections.abc import Callable

from learning.errors import LearningError
from learning.state.checkpoints import Checkpoints

MOST_UNCONFIRMED = 10
"""With so many states on the disk that whoever leads the run does not know to be stored, no other one is written."""


class Storing:
    """Without `checkpoints` nothing is stored.

    `confirmed` are everywhere the steps of the newest state that whoever leads the run knows to be stored: the run may
    go on from it, so it is kept.
    """

    def __init__(self, checkpoints: Checkpoints | None, seconds: float) -> None:
        self._checkpoints = checkpoints
        self._seconds = seconds
        self._stored_at = time.monotonic()
        self._said = ""

    @property
    def last(self) -> int:
        """Steps of the newest state that is stored."""
        return self._checkpoints.last if self._checkpoints else 0

    def is_due(self, confirmed: int) -> bool:
        """Whether the state is to be stored now."""
        if self._checkpoints is None or time.monotonic() <= self._stored_at + self._seconds:
            return False
        return not self._checkpoints.is_writing and self._checkpoints.unconfirmed(confirmed) < MOST_UNCONFIRMED

    def store(self, steps: int, pack: Callable[[], bytes], *, confirmed: int) -> None:
        """Begin to store the state if it is due.

        What fails is said once, and tried again when it is due again.
        """
        if self._checkpoints is None:
            return
        self.say_failure()
        if self.is_due(confirmed):
            self._stored_at = time.monotonic()
            self._checkpoints.write(steps, pack(), confirmed)

    def ensure(self, steps: int, pack: Callable[[], bytes], *, confirmed: int) -> None:
        """Store the state and wait for it, unless it is stored; LearningError when it cannot be."""
        if self._checkpoints is None:
            return
        self._checkpoints.settle()
        if self._checkpoints.last < steps:
            self._stored_at = time.monotonic()
            self._checkpoints.write(steps, pack(), confirmed)
            self._checkpoints.wait()

    def read(self, steps: int, is_over: Callable[[], bool]) -> bytes:
        """The state after so many steps; LearningError when nobody has it, Interrupted when `is_over()` meanwhile."""
        if self._checkpoints is None:
            raise LearningError(
                f"nobody has the state after {steps} steps, and there is no folder of checkpoints",
                "start the run again from its beginning",
            )
        return self._checkpoints.read(steps, is_over)

    def say_failure(self) -> None:
        """Once, if the state could not be stored."""
        failure = self._checkpoints.failure if self._checkpoints else None
        said = str(failure) if failure else ""
        if said and said != self._said:
            print(f"nodewise: {said}", flush=True)
        self._said = said
