"""What a cluster's daemons tell over HTTP of an application: whether it runs, and its masters' containers."""

from __future__ import annotations

import json
import re
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

from hadoop.errors import HadoopError
from hadoop.rest.direct import open_direct

_TIMEOUT_SECONDS = 5.0
_DAEMON = re.compile(r"https?://[^/]+")


class NotKnown(HadoopError):
    """The daemon answered, and does not know (any more) what was asked for."""


def running(rm_http: str, application_id: str) -> bool:
    """Whether an application has not ended; NotKnown when the ResourceManager at `rm_http` does not know it.

    HadoopError when the ResourceManager is away.
    """
    answer = get(_app(rm_http, application_id), f"application {application_id}")
    return json.loads(answer)["app"]["state"] not in ("FINISHED", "FAILED", "KILLED")


def master_containers(rm_http: str, application_id: str) -> list[tuple[str, str]]:
    """Id and NodeManager's HTTP address (host:port) of the application master's container of every attempt, in order.

    NotKnown when the ResourceManager at `rm_http` does not know the application; HadoopError when it is away, or the
    application has not started yet.
    """
    answer = get(f"{_app(rm_http, application_id)}/appattempts", f"application {application_id}")
    found = parse_attempts(json.loads(answer))
    if not found:
        raise HadoopError(f"{application_id} has no log yet: no node has started its application master")
    return found


def parse_attempts(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Read the containers out of `{"appAttempts": {"appAttempt": [{"id": 1, "containerId": ...}]}}`.

    An attempt that has no container yet is left out.
    """
    attempts = (answer.get("appAttempts") or {}).get("appAttempt", [])
    placed = [one for one in attempts if one.get("containerId") and one.get("nodeHttpAddress")]
    return [(one["containerId"], one["nodeHttpAddress"]) for one in sorted(placed, key=lambda one: one["id"])]


def get(url: str, what: str) -> bytes:
    """The body of a daemon's page; NotKnown when it has no such page, HadoopError when it does not or cannot answer."""
    daemon = found.group() if (found := _DAEMON.match(url)) else url
    try:
        with open_direct(url, _TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except HTTPError as error:
        error.close()
        if error.code < 500:
            raise NotKnown(f"{what} is not known at {daemon}: `nodewise job list` shows jobs") from error
        said = f"{daemon} cannot answer now (status {error.code})"
    except (OSError, HTTPException) as error:
        said = f"{daemon} does not answer ({getattr(error, 'reason', error)})"
    raise HadoopError(f"{said}: `nodewise cluster status` tells what is up")


def _app(rm_http: str, application_id: str) -> str:
    return f"{rm_http}/ws/v1/cluster/apps/{quote(application_id)}"
