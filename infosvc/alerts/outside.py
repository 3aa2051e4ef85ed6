"""What others know of the cluster: asked for only while an alert is about it, and never by who looks at alerts."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from infosvc.alerts.condition import Happening
from infosvc.state.views import Latest

LOOK_SECONDS = 5.0
_ABOUT = (Happening.JOB_FAILED, Happening.QUEUE_STUCK)

_log = logging.getLogger(__name__)


class FailedJob(NamedTuple):
    """A job of the cluster that failed, at a Unix second; `owner` is who alone may know, besides admins, "" for all."""

    job_id: str
    ended_at: float
    said: str
    owner: str = ""


class ClusterFacts(NamedTuple):
    """The jobs that failed, and the queues in which applications run; None while that is not known."""

    failed_jobs: Sequence[FailedJob] = ()
    busy_queues: frozenset[str] | None = None


ClusterLook = Callable[[], ClusterFacts]


class Outside:
    """A thread for each source, which may hang; `facts` is what they have told last."""

    def __init__(self, latest: Latest) -> None:
        self._latest = latest
        self._told: dict[ClusterLook, ClusterFacts] = {}
        self._ended = threading.Event()

    def facts(self) -> ClusterFacts:
        """All that is known now; without sources, no queue is busy."""
        told = list(self._told.values())
        failed = [job for one in told for job in one.failed_jobs]
        busy = frozenset[str]().union(*(one.busy_queues or () for one in told))
        is_known = all(one.busy_queues is not None for one in told)
        return ClusterFacts(failed, busy if is_known else None)

    def start(self, source: ClusterLook) -> None:
        """Ask a source from now on."""
        self._told[source] = ClusterFacts()
        threading.Thread(target=self._run, args=(source,), name="cluster-facts", daemon=True).start()

    def close(self) -> None:
        """End the threads; one that waits for its source ends when that has answered."""
        self._ended.set()

    def _run(self, source: ClusterLook) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            if not any(one.condition in _ABOUT for one in self._latest.configuration.alerts.values()):
                self._told[source] = ClusterFacts()
                continue
            try:
                self._told[source] = source()
            except Exception:  # the next look may go better
                _log.exception("what is known of the cluster could not be asked for")
