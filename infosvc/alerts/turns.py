"""How an alert goes on and off, and what is told of it: a change of state is told once, in the commit that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from infosvc.alerts.condition import Happening
from infosvc.alerts.findings import KEPT_SECONDS, Finding
from infosvc.posting import outbox
from infosvc.state.configuration import AlertState, StoredAlert
from infosvc.state.transaction import Transaction

_GONE = Finding(False, "it is there no more, or nothing is known of it")


class Turn(NamedTuple):
    """A change of how an alert stands about one thing."""

    alert_id: str
    about: str
    before: AlertState | None
    after: AlertState | None
    said: str

    @property
    def is_told(self) -> bool:
        """Whether it went on or off."""
        return _is_on(self.before) != _is_on(self.after)


def turns_of(
    alert_id: str,
    alert: StoredAlert,
    states: Mapping[str, AlertState],
    findings: Mapping[str, Finding],
    now: float,
) -> Iterator[Turn]:
    """What changes for one alert at Unix second `now`."""
    for about in states.keys() | findings.keys():
        before = states.get(about)
        finding = findings.get(about, _GONE)
        if alert.condition == Happening.JOB_FAILED:
            after = _after_failure(before, finding, now)
        else:
            after = next_state(before, finding, alert.seconds, now)
        if after != before:
            yield Turn(alert_id, about, before, after, finding.said)


def next_state(before: AlertState | None, finding: Finding, seconds: float, now: float) -> AlertState | None:
    """How an alert stands after a look; what is not known leaves it as it is."""
    if finding.holds is None:
        return before
    if before is None or not before.is_on:
        if not finding.holds:
            return None
        since = now if before is None else before.since
        is_on = now - since >= seconds
        return AlertState(is_on, now if is_on else since, None, finding.said if is_on else "", finding.owner)
    if finding.holds:
        return before if before.until is None else msgspec.structs.replace(before, until=None)
    until = now if before.until is None else before.until
    return None if now - until >= seconds else msgspec.structs.replace(before, until=until)


def apply(transaction: Transaction, turns: Iterable[Turn], now: float) -> None:
    """Make changes, and let the alerts' addresses be told; what was changed or removed meanwhile is left out."""
    for turn in turns:
        alert: StoredAlert | None = transaction.find("alerts", (turn.alert_id,))
        key = (turn.alert_id, turn.about)
        if alert is None or transaction.find("alert_states", key) != turn.before:
            continue
        transaction.put("alert_states", key, turn.after)
        if alert.url and turn.is_told and not _ends_by_age(alert, turn):
            told: dict[str, object] = {"alert_id": turn.alert_id, "condition": alert.condition, "about": turn.about}
            told |= {"on": _is_on(turn.after), "said": turn.said}
            outbox.add(transaction, alert.url, now, turn.alert_id, type="alert", **told)


def _after_failure(before: AlertState | None, finding: Finding, now: float) -> AlertState | None:
    """A job that failed stays so: the alert is on for it a day, whether others still remember it or not.

    It stays on as long as the job is found, which is longer where YARN's clock is ahead: it would be told once more.
    """
    if before is not None:
        return before if finding.holds or now - before.since < KEPT_SECONDS else None
    return AlertState(True, now, None, finding.said, finding.owner) if finding.holds else None


def _ends_by_age(alert: StoredAlert, turn: Turn) -> bool:
    return alert.condition == Happening.JOB_FAILED and not _is_on(turn.after)


def _is_on(state: AlertState | None) -> bool:
    return state is not None and state.is_on
