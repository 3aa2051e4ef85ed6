"""Jobs that failed, as others know them: asked for only while an alert is about them, and never by who looks at it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from infosvc.alerts.condition import Happening
from infosvc.alerts.findings import FailedJob
from infosvc.state.views import Latest

LOOK_SECONDS = 5.0

FailedJobs = Callable[[], Iterable[FailedJob]]

_log = logging.getLogger(__name__)


class Outside:
    """A thread for each source, which may hang; `failed_jobs` is what each has told last."""

    def __init__(self, latest: Latest) -> None:
        self._latest = latest
        self._told: dict[FailedJobs, list[FailedJob]] = {}
        self._ended = threading.Event()

    def failed_jobs(self) -> list[FailedJob]:
        """All that are known."""
        return [job for jobs in list(self._told.values()) for job in jobs]

    def start(self, source: FailedJobs) -> None:
        """Ask a source from now on."""
        threading.Thread(target=self._run, args=(source,), name="failed-jobs", daemon=True).start()

    def close(self) -> None:
        """End the threads; one that waits for its source ends when that has answered."""
        self._ended.set()

    def _run(self, source: FailedJobs) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            if not any(one.condition == Happening.JOB_FAILED for one in self._latest.configuration.alerts.values()):
                continue
            try:
                self._told[source] = list(source())
            except Exception:  # the next look may go better
                _log.exception("jobs that failed could not be asked for")
