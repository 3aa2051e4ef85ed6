"""What a program writes down of its steps, a line of JSON each, in a file that names its node and its process.

steps-NODE-PID.jsonl   [steps that are done, second of the monotonic clock, own samples of the last one, their seconds]
parts-NODE-PID.jsonl   [step, generation, numbers of own samples], where they are kept
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

from bench.training.settings import Settings


class StepLog:
    """Of a process on one node."""

    def __init__(self, settings: Settings, node: int) -> None:
        name = f"{node}-{os.getpid()}.jsonl"
        self._steps_file = (Path(settings.out) / f"steps-{name}").open("w", buffering=1)
        self._parts_file = (Path(settings.out) / f"parts-{name}").open("w") if settings.keeps_numbers else None
        self._at: tuple[int, int] | None = None
        self._samples, self._seconds, self._began = 0, 0.0, 0.0

    def begin(self, steps: int) -> None:
        """The process is ready, with a state of so many steps."""
        self._write(steps)
        self._at = (steps, 0)

    def compute(self, step: int, generation: int, numbers: Sequence[int]) -> None:
        """A piece of a step is about to be computed."""
        if self._at is None or step != self._at[0]:
            self._write(step)
        if (step, generation) != self._at:
            self._at, self._samples, self._seconds = (step, generation), 0, 0.0
        self._samples += len(numbers)
        if self._parts_file is not None:
            self._parts_file.write(json.dumps([step, generation, list(numbers)]) + "\n")
            self._parts_file.flush()
        self._began = time.perf_counter()

    def computed(self) -> None:
        """The piece has been."""
        self._seconds += time.perf_counter() - self._began

    def reach(self, steps: int) -> None:
        """So many steps are done."""
        if self._at is None or steps != self._at[0]:
            self._write(steps)
            self._at, self._samples, self._seconds = (steps, 0), 0, 0.0

    def _write(self, steps: int) -> None:
        self._steps_file.write(json.dumps([steps, time.monotonic(), self._samples, self._seconds]) + "\n")
