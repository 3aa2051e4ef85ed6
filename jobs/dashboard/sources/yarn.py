"""The jobs among YARN's applications, read over the ResourceManager's REST interface."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest.pages import Limits, NotKnown
from hadoop.rest.resourcemanager import ResourceManager
from jobs.application.following import ASK_SECONDS
from jobs.application.status import JobStatus
from jobs.dashboard.sources.site import Place

KIND = "NODEWISE"
"""Applications of this type are ours; of others nothing is shown, nor are they ended."""
STATUS_LIMITS = Limits(connect=ASK_SECONDS, silence=ASK_SECONDS, seconds=5.0, size_bytes=16 * 1024 * 1024)
"""For what an application master says, which is its owner's program."""


@dataclass(frozen=True)
class Known:
    """One application and what REST tells of it beyond; times in Unix seconds, None for what has not happened."""

    application: Application
    user: str
    queue: str
    started_at: float | None
    finished_at: float | None


def parse_known(row: Mapping[str, Any]) -> Known:
    """Read one `app`: its progress is in percent, its times in milliseconds, 0 for none, its tags stand in one text.

    >>> row = {"id": "application_1_0001", "state": "RUNNING", "finalStatus": "UNDEFINED", "progress": 50.0}
    >>> parse_known(row | {"applicationTags": "output=/out/a", "startedTime": 2000}).application.progress
    0.5
    """
    tags = str(row.get("applicationTags") or "")
    started, finished = (_seconds(row.get(key)) for key in ("startedTime", "finishedTime"))
    application = Application(
        application_id=str(row["id"]),
        name=str(row.get("name") or ""),
        state=str(row["state"]),
        final=str(row["finalStatus"]),
        progress=min(max(float(row.get("progress") or 0) / 100, 0.0), 1.0),
        diagnostics=str(row.get("diagnostics") or "").strip(),
        host="N/A",
        started_at=started or 0.0,
        tags=frozenset(tag.strip() for tag in tags.split(",") if tag.strip()),
    )
    return Known(application, str(row.get("user") or ""), str(row.get("queue") or ""), started, finished)


def _seconds(milliseconds: Any) -> float | None:
    return float(milliseconds) / 1000 if milliseconds else None


class RestYarn:
    """The ResourceManager of a place. Every method raises HadoopError, NotKnown for an application it does not know."""

    def __init__(self, place: Place) -> None:
        self._manager = ResourceManager(place.managers, place.user)

    def all(self) -> list[Known]:
        """Every application of ours that YARN remembers, the newest first."""
        rows = self._manager.applications(KIND)
        return sorted(map(parse_known, rows), key=lambda known: known.started_at or 0.0, reverse=True)

    def busy_queues(self) -> frozenset[str]:
        """The queues in which applications run, of any type."""
        return frozenset(str(row.get("queue") or "") for row in self._manager.applications(states=("RUNNING",)))

    def find(self, application_id: str) -> Known:
        """One application of ours."""
        row = self._manager.application(application_id)
        if row.get("applicationType") != KIND:
            raise NotKnown(f"{application_id} is not a job of nodewise", remedy="`nodewise job list` shows jobs")
        return parse_known(row)

    def application(self, application_id: str) -> Application:
        """The same as hadoop.client.yarn tells it."""
        return self.find(application_id).application

    def node_addresses(self) -> set[str]:
        """Where NodeManagers answer over HTTP (host:port), also those that take no work."""
        return self._manager.node_addresses()

    def running_nodes(self) -> list[str]:
        """Host names of the NodeManagers that take work, sorted."""
        return sorted(self._manager.running_nodes())

    def status(self, application: Application) -> JobStatus | None:
        """What an application master says of its job, None when it says nothing that makes sense."""
        if application.state != "RUNNING":
            return None
        try:
            content = self._manager.read_proxied(application.application_id, "/status", STATUS_LIMITS)
            return JobStatus.from_json(json.loads(content))
        except (HadoopError, ValueError, KeyError, TypeError):
            return None
