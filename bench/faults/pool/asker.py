"""Who asks a pool about single pictures all the time, and knows the right answers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from hadoop.errors import HadoopError
from jobs.errors import JobError
from jobs.kinds.pool.client import Ended, NotNow

AGAIN_SECONDS = 0.5
"""From a refusal until the same picture is asked about again."""
PATIENCE_SECONDS = 180.0
"""How long a picture may be refused again and again."""
CALL_SECONDS = 120.0
"""Longer than any call takes."""
LONGEST = 200
"""Letters of a refusal that are kept."""


class Asker:
    """Asks for the row of one picture after another, of which `ask` gets the path, until `stop`.

    A refusal that may pass is counted, and the same picture is asked about again after `pause` seconds. `wrong` are
    other refusals, rows of another picture, with an error or with another class than in `classes`, and pictures that
    have no row for `patience` seconds.
    """

    def __init__(
        self,
        ask: Callable[[str], Mapping[str, Any]],
        classes: Mapping[str, int],
        patience: float = PATIENCE_SECONDS,
        pause: float = AGAIN_SECONDS,
    ) -> None:
        self.answered = 0
        self.refused: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._ask = ask
        self._classes = classes
        self._patience, self._pause = patience, pause
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask_all, name="asker", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask about no other picture; returns when the last one has its answer, or waits in vain once."""
        if self._ended.is_set():
            return
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(self._patience + CALL_SECONDS)
        if self._thread.is_alive():
            self.wrong.append("whoever asks about single pictures has heard nothing")

    def _ask_all(self) -> None:
        paths: Sequence[str] = sorted(self._classes)
        for number in count():
            if self._ended.is_set():
                return
            path = paths[number % len(paths)]
            try:
                self._ask_until_answered(path)
            except Exception as error:  # whatever it is, nobody may take it for an answer
                self.wrong.append(f"{path}: {type(error).__name__}: {error}")
                return

    def _ask_until_answered(self, path: str) -> None:
        give_up = time.monotonic() + self._patience
        while True:
            try:
                row = self._ask(path)
            except (JobError, HadoopError) as error:
                if isinstance(error, Ended) or (isinstance(error, JobError) and not isinstance(error, NotNow)):
                    raise
                self.refused[str(error)[:LONGEST]] += 1
                if time.monotonic() > give_up:
                    self.wrong.append(f"{path} had no row for {self._patience:.0f} s: {error}")
                    return
                time.sleep(self._pause)
            else:
                self._check(path, row)
                return

    def _check(self, path: str, row: Mapping[str, Any]) -> None:
        self.answered += 1
        if row.get("path") != path:
            self.wrong.append(f"{path} has the row of {row.get('path')}")
        elif row.get("error"):
            self.wrong.append(f"{path}: {row['error']}")
        elif row.get("class_id") != self._classes[path]:
            self.wrong.append(f"{path} has class {row.get('class_id')}, and {self._classes[path]} is right")
