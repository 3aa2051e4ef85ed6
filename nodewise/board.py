"""What `nodewise serve` tells of HDFS paths and jobs: only up here are both the service and the cluster known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from flask import g

from infosvc.access.roles import Caller
from infosvc.alerts.outside import ClusterFacts, FailedJob
from infosvc.data.event_sources import EventSource
from infosvc.http.api.body import body, read
from infosvc.http.api.call_group import PREFIX, CallGroup, Route
from infosvc.http.api.exchange import latest, record_call
from infosvc.tasks.listing import find
from infosvc.wire.records import Datum
from infosvc.wire.tasks import LONGEST_REASON, Task
from jobs.dashboard import make_board
from jobs.dashboard.sources.values import Viewer

if TYPE_CHECKING:
    from jobs.dashboard.sources.yarn import Known

R = TypeVar("R")


class _Values:
    """What the service that answers the call knows."""

    def data(self, data_name: str) -> list[Datum]:
        return latest().data(data_name)

    def viewer(self) -> Viewer:
        caller: Caller = g.caller
        return caller

    def read_body(self, record: type[R]) -> R:
        return read(record, body())

    def tasks(self) -> Mapping[str, Task]:
        return {task_id: stored.task for task_id, stored in latest().configuration.tasks.items()}

    def task(self, task_id: str) -> Task:
        return find(latest().configuration, g.caller.owners, task_id).task


def board_calls(home: Path, open_paths: Sequence[str] = ()) -> CallGroup:
    """Those calls, with events of jobs; `home` is where `nodewise cluster up` keeps its site files.

    With Kerberos, every caller sees the `open_paths` of HDFS as the service does.
    """
    board = make_board(home, _Values(), record_call, open_paths)
    made = tuple(Route(f"{PREFIX}{one.rule}", one.name, view, one.role, one.method) for one, view in board.routes)

    def look() -> ClusterFacts:
        return ClusterFacts([_failed(one) for one in board.failed_jobs()], board.busy_queues())

    return CallGroup("board", None, made, _document, EventSource("job", board.look), look)


def _failed(known: Known) -> FailedJob:
    application = known.application
    why = application.diagnostics or "no reason is known"
    said = f"{application.name} of {known.user} failed: {why}"[:LONGEST_REASON]
    return FailedJob(application.application_id, known.finished_at or 0.0, said, known.only_for)


def _document() -> Mapping[str, Any]:
    from jobs.dashboard.document import BOARD  # made of all that is answered: only who asks for it pays for that

    return BOARD
