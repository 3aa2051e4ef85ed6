"""YARN's applications and nodes over the ResourceManager's REST interface, as hadoop.client.yarn has them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.local.health import parse_nodemanagers
from hadoop.rest.direct import open_direct
from hadoop.rest.logs import NotKnown, get
from jobs.application.following import ASK_SECONDS
from jobs.application.status import JobStatus
from jobs.dashboard.site import Place

KIND = "NODEWISE"
"""Applications of this type are ours; of others nothing is shown, nor are they ended."""
MOST_STATUS_BYTES = 16 * 1024 * 1024
STATUS_SECONDS = 5.0
"""At most so much, in so long, of what an application master says, which is its owner's program."""
CHUNK_BYTES = 64 * 1024


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
        self._rm_http = place.rm_http
        # Without a name REST takes us for nobody, who sees less of an application.
        self._user = quote(place.user)

    def all(self) -> list[Known]:
        """Every application of ours that YARN remembers, the newest first."""
        said = self._ask(f"/apps?applicationTypes={KIND}&user.name={self._user}", "the list of applications")
        rows = (said.get("apps") or {}).get("app") or []
        return sorted(map(parse_known, rows), key=lambda known: known.started_at or 0.0, reverse=True)

    def known(self, application_id: str) -> Known:
        """One application of ours."""
        said = self._ask(f"/apps/{quote(application_id)}?user.name={self._user}", f"application {application_id}")
        if said["app"].get("applicationType") != KIND:
            raise NotKnown(f"{application_id} is no job of nodewise: `nodewise job list` shows jobs")
        return parse_known(said["app"])

    def application(self, application_id: str) -> Application:
        """The same as hadoop.client.yarn tells it."""
        return self.known(application_id).application

    def doors(self) -> frozenset[str]:
        """Where NodeManagers answer over HTTP (host:port), those too that take no work."""
        nodes = (self._ask("/nodes", "the list of nodes").get("nodes") or {}).get("node") or []
        return frozenset(str(node.get("nodeHTTPAddress")) for node in nodes)

    def running_nodes(self) -> list[str]:
        """Host names of the NodeManagers that take work, sorted."""
        return sorted(parse_nodemanagers(self._ask("/nodes", "the list of nodes")))

    def status(self, application: Application) -> JobStatus | None:
        """What an application master says of its job, None when it says nothing that makes sense.

        It is asked through the ResourceManager's proxy: REST does not tell everybody where it listens.
        """
        if application.state != "RUNNING":
            return None
        try:
            url = f"{self._rm_http}/proxy/{quote(application.application_id)}/status"
            with open_direct(url, ASK_SECONDS) as answer:
                return JobStatus.from_json(json.loads(_promptly(answer)))
        except HTTPError as error:
            error.close()
            return None
        except (OSError, HTTPException, ValueError, KeyError, TypeError):
            return None

    def _ask(self, where: str, what: str) -> dict[str, Any]:
        content = get(f"{self._rm_http}/ws/v1/cluster{where}", what)
        try:
            found: dict[str, Any] = json.loads(content)
        except ValueError as error:
            raise HadoopError(f"{self._rm_http} answers, but is no ResourceManager: check yarn-site.xml") from error
        return found


def _promptly(answer: Any) -> bytes:
    """All that an answer says; nothing when it goes on for too long, for that would hold a thread and memory."""
    content, deadline = bytearray(), time.monotonic() + STATUS_SECONDS
    while chunk := answer.read1(CHUNK_BYTES):
        content += chunk
        if len(content) > MOST_STATUS_BYTES or time.monotonic() > deadline:
            return b""
    return bytes(content)
