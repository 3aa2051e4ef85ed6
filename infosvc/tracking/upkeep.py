"""Removes runs that are kept no longer, and experiments that have had no run for as long."""

from __future__ import annotations

from collections.abc import Callable

from infosvc.settings import Settings
from infosvc.state.transaction import Transaction
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.tasks.retention import DAY, MOST_AT_ONCE
from infosvc.tracking import bounds, experiments


def upkeep(latest: Latest, writer: Writer, settings: Settings) -> Callable[[], None]:
    """What must be called now and then."""

    def retire(transaction: Transaction) -> None:
        now = latest.clock.wall()
        for run_id in bounds.overdue(transaction.configuration, settings, now):
            transaction.remove_run(run_id)
        old = now - settings.task_days * DAY
        for one in experiments.empty_before(transaction.configuration, old)[:MOST_AT_ONCE]:
            transaction.put("experiments", (one.experiment_id,), None)

    def look() -> None:
        now = latest.clock.wall()
        old = now - settings.task_days * DAY
        while bounds.overdue(latest.configuration, settings, now) or experiments.empty_before(
            latest.configuration, old
        ):
            writer.write(retire)

    return look
