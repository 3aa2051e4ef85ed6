"""What becomes of jobs, as events: each list of jobs is compared with the one before it.

Lists are compared whoever asked for them, so that an event follows whatever a list has shown: who first watches events
and then reads the list misses nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobs.application.job_record import kind_of
from jobs.dashboard.sources.site import Place
from jobs.dashboard.sources.yarn import Known

KEPT_SECONDS = 60.0
"""What changed in a longer pause, in which nobody read the list or tried to, is not told any more."""

Tell = Callable[[Mapping[str, Any]], None]


class JobEvents:
    """Tells each job that appears, changes its state or ends. The first list is only what others are compared with."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tell: Tell | None = None
        self._place: Place | None = None
        self._known: Mapping[str, tuple[str, str]] | None = None
        self._read_at = clock()

    def begin(self, tell: Tell) -> None:
        """Somebody is about to read the list for those who watch; what is found from now on goes to `tell`."""
        with self._lock:
            self._tell = tell
            self._note_reading()

    def compare(self, place: Place, found: Sequence[Known]) -> None:
        """Tell what is new in the list of jobs of a place."""
        now = {one.application.application_id: (one.application.state, one.application.final) for one in found}
        with self._lock:
            self._note_reading()
            before = self._known if place == self._place else None
            self._place, self._known = place, now
            if before is None or self._tell is None:
                return
            for one in reversed(found):  # the oldest first
                job_id = one.application.application_id
                if before.get(job_id) != now[job_id]:
                    self._tell(event(one))

    def _note_reading(self) -> None:
        now = self._clock()
        if now - self._read_at > KEPT_SECONDS:
            self._known = None
        self._read_at = now


def event(known: Known) -> dict[str, Any]:
    """What an event says of a job, in the words of the list of jobs; `owner` is who alone is told, besides admins."""
    application = known.application
    told = {
        "job_id": application.application_id,
        "kind": kind_of(application.tags),
        "state": application.state,
        "final": application.final,
        "ended": application.has_ended,
        "progress": application.progress,
    }
    return told | ({"owner": known.only_for} if known.only_for else {})


def has_failed(known: Known) -> bool:
    """Whether a job has ended badly and was not ended by somebody; tasks are known by their own states."""
    application = known.application
    return application.has_ended and application.final == "FAILED" and kind_of(application.tags) != "task"
