"""Looks once a second, less often when a look takes long, whether conditions hold, and stores what has changed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import lru_cache, partial

from infosvc.alerts.condition import Condition, parse
from infosvc.alerts.findings import Findings
from infosvc.alerts.outside import Outside
from infosvc.alerts.turns import Turn, apply, turns_of
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.wire.errors import InfoError

STEP_SECONDS = 1.0
REST_PER_LOOK = 10.0  # so that many alerts on many nodes take at most a tenth of one core
MOST_AT_ONCE = 500  # changes in one commit

_log = logging.getLogger(__name__)


class AlertWatch:
    """One thread; what it could not store, it finds again at the next look. `outside` asks others for jobs."""

    def __init__(self, latest: Latest, writer: Writer, is_lost: Callable[[str], bool]) -> None:
        self.outside = Outside(latest)
        self._latest, self._writer = latest, writer
        self._findings = Findings(latest, is_lost, self.outside.facts)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Look now."""
        turns = self._turns()
        if turns:
            now = self._latest.clock.wall()
            self._writer.write(partial(apply, turns=turns[:MOST_AT_ONCE], now=now))

    def close(self) -> None:
        """Look no more."""
        self.outside.close()
        self._ended.set()
        self._thread.join()

    def _turns(self) -> list[Turn]:
        configuration, now = self._latest.configuration, self._latest.clock.wall()
        found: list[Turn] = []
        self._findings.begin()
        for alert_id, alert in configuration.alerts.items():
            states = configuration.alert_states.get(alert_id, {})
            findings = self._findings.of(_parse(alert.condition), alert.created_at, states.keys())
            found += turns_of(alert_id, alert, states, findings, now)
        return found

    def _run(self) -> None:
        rest = STEP_SECONDS
        while not self._ended.wait(rest):
            began = time.monotonic()
            try:
                self.step()
            except InfoError as error:
                _log.warning("how alerts stand could not be stored: %s", error)
            except Exception:  # the next look may go better
                _log.exception("alerts could not be looked at")
            rest = max(STEP_SECONDS, REST_PER_LOOK * (time.monotonic() - began))


@lru_cache(maxsize=256)
def _parse(text: str) -> Condition:
    return parse(text)
