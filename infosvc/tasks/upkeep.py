"""Removes what is kept no longer: tasks that ended long ago, archives that no task names, and what others add."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from infosvc.settings import Settings
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.tasks import retention
from infosvc.tasks.archives import Archives
from infosvc.wire.errors import InfoError

EVERY_SECONDS = 600.0

_log = logging.getLogger(__name__)


class Upkeep:
    """Looks every ten minutes, in a thread of its own, until `close`; `after` is what looks after the tasks."""

    def __init__(
        self, latest: Latest, writer: Writer, archives: Archives, settings: Settings, after: Callable[[], None]
    ) -> None:
        self._latest = latest
        self._writer = writer
        self._archives = archives
        self._settings = settings
        self._after = after
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tasks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Remove what is kept no longer now."""
        now, settings = self._latest.clock.wall(), self._settings
        while not self._ended.is_set() and retention.overdue(self._latest.configuration.tasks, settings, now):
            self._writer.write(lambda transaction: retention.retire(transaction, settings, now))
        tasks = self._latest.configuration.tasks.values()
        self._archives.remove_unused({stored.task.spec.files for stored in tasks if stored.task.spec.files})
        self._after()

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except InfoError as error:
                _log.warning("tasks that are kept no longer are still there: %s", error)
            except Exception:  # the next look may go better
                _log.exception("what is left of tasks could not be looked at")
            if self._ended.wait(EVERY_SECONDS):
                return
