"""Alerts that there are: added, removed and shown; each function refuses first and then changes the transaction."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable

from infosvc.access.roles import Caller
from infosvc.alerts.condition import Comparisons, Happening, parse
from infosvc.posting import outbox
from infosvc.posting.addresses import shown
from infosvc.state.configuration import Configuration, StoredAlert
from infosvc.state.transaction import Transaction
from infosvc.wire.alerts.alert_records import Alert, AlertBody, AlertOn
from infosvc.wire.errors import Conflict, InvalidInput, NotFound
from infosvc.wire.records import Role

MOST_ALERTS = 100


def add(transaction: Transaction, asked: AlertBody, created_by: str, now: float) -> str:
    """Add an alert; its id.

    InvalidInput for a condition that is wrong, NotFound for a data name that nobody registered, Conflict when there is
    such an alert, or when there are too many.
    """
    condition = parse(asked.condition)
    if isinstance(condition, Comparisons):
        for name in condition.names:
            transaction.configuration.producer(name)
    elif condition is Happening.JOB_FAILED and asked.seconds:
        raise InvalidInput("a job fails at one moment", "seconds", remedy="leave the time (--for) out")
    text = " ".join(asked.condition.split())
    for alert_id, one in transaction.configuration.alerts.items():
        if (one.condition, one.url) == (text, asked.notify):
            raise Conflict(
                f"{alert_id} has this condition and address",
                "condition",
                remedy=f"remove it first with `nodewise alert rm {alert_id}`",
            )
    if len(transaction.configuration.alerts) >= MOST_ALERTS:
        raise Conflict(f"there are {MOST_ALERTS} alerts already", remedy="remove one that nobody needs")
    alert_id = f"alert_{secrets.token_hex(8)}"
    transaction.put("alerts", (alert_id,), StoredAlert(text, asked.seconds, asked.notify, created_by, now))
    return alert_id


def remove(transaction: Transaction, alert_id: str) -> None:
    """Remove an alert with all that is kept of it; NotFound when there is none."""
    find(transaction.configuration, alert_id)
    for about in list(transaction.configuration.alert_states.get(alert_id, {})):
        transaction.put("alert_states", (alert_id, about), None)
    outbox.drop_of_alert(transaction, alert_id)
    transaction.put("alerts", (alert_id,), None)


def find(configuration: Configuration, alert_id: str) -> StoredAlert:
    """One alert; NotFound when there is none."""
    stored = configuration.alerts.get(alert_id)
    if stored is None:
        raise NotFound(
            f"no alert is called {alert_id[:40]!r}",
            "alert_id",
            remedy="`nodewise alert list` shows those that there are",
        )
    return stored


def show(configuration: Configuration, caller: Caller, trouble: Callable[[str], str]) -> list[Alert]:
    """All alerts as a caller may see them, the oldest first; `trouble` says why an address gets nothing."""
    waiting = Counter(delivery.alert_id for delivery in configuration.deliveries.values())
    found = sorted(configuration.alerts.items(), key=lambda one: (one[1].created_at, one[0]))
    return [
        Alert(
            alert_id,
            one.condition,
            one.seconds,
            one.url if one.url is None or caller.role is Role.ADMIN else shown(one.url),
            one.created_by,
            one.created_at,
            _on(configuration, alert_id, caller),
            waiting[alert_id],
            trouble(one.url) if one.url and waiting[alert_id] else "",
        )
        for alert_id, one in found
    ]


def _on(configuration: Configuration, alert_id: str, caller: Caller) -> tuple[AlertOn, ...]:
    """What it is on for; of tasks, those that the caller may see."""
    states = configuration.alert_states.get(alert_id, {})
    owners = caller.owners
    return tuple(
        AlertOn(about, state.since, state.said)
        for about, state in sorted(states.items())
        if state.is_on and (not state.owner or owners is None or state.owner in owners)
    )
