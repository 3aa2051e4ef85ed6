"""The jobs among YARN's applications, read over the ResourceManager's REST interface."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest.pages import Limits, NotKnown
from hadoop.rest.resourcemanager import ResourceManager
from hadoop.rest.told import without_restarts
from jobs.application.following import ASK_SECONDS
from jobs.application.status import JobStatus
from jobs.dashboard.sources.eyes import SERVICE, Eyes
from jobs.dashboard.sources.site import Place

KIND = "NODEWISE"
"""Applications of this type are ours; of others nothing is shown, nor are they ended."""
STATUS_LIMITS = Limits(connect=ASK_SECONDS, silence=ASK_SECONDS, seconds=5.0, size_bytes=16 * 1024 * 1024)
"""For what an application master says, which is its owner's program."""
_NOBODY = "-"
"""No token has this name: what has no user, if YARN ever told of such, is for admins alone."""


@dataclass(frozen=True)
class Known:
    """One application and what REST tells of it beyond; times in Unix seconds, None for what has not happened.

    `only_for` is the user who may know of it, besides admins; it is empty where everybody may, for want of Kerberos.
    """

    application: Application
    user: str
    queue: str
    started_at: float | None
    finished_at: float | None
    only_for: str = ""


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
        diagnostics=without_restarts(str(row.get("diagnostics") or "")),
        host="N/A",
        started_at=started or 0.0,
        tags=frozenset(tag.strip() for tag in tags.split(",") if tag.strip()),
    )
    return Known(application, str(row.get("user") or ""), str(row.get("queue") or ""), started, finished)


def _seconds(milliseconds: Any) -> float | None:
    return float(milliseconds) / 1000 if milliseconds else None


class RestYarn:
    """The ResourceManager of a place. Every method raises HadoopError, NotKnown for an application it does not know.

    With Kerberos it still tells whoever has a ticket of every application: to a user, as `eyes` say, it is asked here
    whose they are.
    """

    def __init__(self, place: Place, eyes: Eyes = SERVICE) -> None:
        self._manager = ResourceManager(place.managers, place.user)
        self._has_kerberos = place.has_kerberos
        self._eyes = eyes

    def all(self) -> list[Known]:
        """Every application of ours that YARN remembers, the newest first; NotShown to nobody's eyes."""
        found = map(self._parse, self._manager.applications(KIND))
        return self.own(sorted(found, key=lambda known: known.started_at or 0.0, reverse=True))

    def own(self, found: list[Known]) -> list[Known]:
        """Those of which the eyes may know; NotShown to nobody's."""
        self._eyes.check_jobs()
        return [one for one in found if self._eyes.may_know(one.only_for)]

    def busy_queues(self) -> frozenset[str]:
        """The queues in which applications run, of any type."""
        return frozenset(str(row.get("queue") or "") for row in self._manager.applications(states=("RUNNING",)))

    def find(self, application_id: str) -> Known:
        """One application of ours; NotShown to nobody's eyes."""
        self._eyes.check_jobs()
        try:
            row = self._manager.application(application_id)
        except NotKnown:
            if self._eyes.user is None:
                raise
            raise self._not_known(application_id) from None
        known = self._parse(row)
        if row.get("applicationType") != KIND or not self._eyes.may_know(known.only_for):
            raise self._not_known(application_id)
        return known

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

    def _parse(self, row: Mapping[str, Any]) -> Known:
        known = parse_known(row)
        return replace(known, only_for=known.user or _NOBODY) if self._has_kerberos else known

    def _not_known(self, application_id: str) -> NotKnown:
        """The same whether YARN does not know it or somebody else has it."""
        whose = "of nodewise" if self._eyes.user is None else f"of {self._eyes.user}"
        return NotKnown(f"{application_id} is not a job {whose}", remedy="`nodewise job list` shows jobs")
