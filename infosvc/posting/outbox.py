"""What is to be told: put into the commit that makes it true, so that nothing is told twice, and nothing forgotten."""

from __future__ import annotations

import json
import logging
import secrets
from typing import Any

from infosvc.state.configuration import Delivery
from infosvc.state.transaction import Transaction
from infosvc.wire.tasks import Task

MOST_WAITING = 10_000
MOST_OF_TASKS = 5_000  # beyond so many that wait, only alerts are told: users must not keep admins from being told

_log = logging.getLogger(__name__)


def add(transaction: Transaction, url: str, now: float, of_alert: str = "", **said: Any) -> None:
    """Let a message be sent after this commit, which goes with its alert if it is of one.

    With too many that wait, it is left out and the log says so.
    """
    waiting = len(transaction.configuration.deliveries)
    if waiting >= (MOST_WAITING if of_alert else MOST_OF_TASKS):
        _log.error("%d messages wait already: one about %s is not sent", waiting, said)
        return
    event_id = new_event_id()
    delivery = Delivery(url, message(event_id, now, **said), now, of_alert)
    transaction.put("deliveries", (event_id,), delivery)


def new_event_id() -> str:
    """The id of one message, by which its receiver knows it when it comes twice."""
    return secrets.token_hex(16)


def message(event_id: str, now: float, **said: Any) -> str:
    """The body of a message, a JSON object."""
    return json.dumps({"event_id": event_id, "at": now, **said})


def tell_end(transaction: Transaction, task: Task, now: float) -> None:
    """Let the address that a task names be told how it ended."""
    if task.spec.notify is None:
        return
    told = ("task_id", "name", "owner", "reason", "exit_code", "application_id", "started_at", "ended_at")
    said = {name: getattr(task, name) for name in told}
    add(transaction, task.spec.notify, now, type="task", state=task.state.value, **said)


def drop_of_alert(transaction: Transaction, alert_id: str) -> None:
    """Tell nothing more of an alert."""
    for event_id, delivery in list(transaction.configuration.deliveries.items()):
        if delivery.alert_id == alert_id:
            transaction.put("deliveries", (event_id,), None)
