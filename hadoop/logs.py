"""What containers printed, as the NodeManagers that ran them serve it over HTTP."""

from __future__ import annotations

import json
import re
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import quote

from hadoop.direct import open_direct
from hadoop.errors import HadoopError

_TIMEOUT_SECONDS = 10.0
_CONTENTS = re.compile(r"LogContents:\n(.*?)\n?End of LogType:", re.DOTALL)
_MASTER_LOGS = re.compile(r"http://([^/]+)/node/containerlogs/(container_\w+)")


def master_container(rm_http: str, application_id: str) -> tuple[str, str]:
    """Id of the application master's container, and its NodeManager's HTTP address (host:port).

    HadoopError when the ResourceManager at `rm_http` does not know the application, or it has not started yet.
    """
    answer = _get(f"{rm_http}/ws/v1/cluster/apps/{quote(application_id)}", f"application {application_id}")
    found = _MASTER_LOGS.match(json.loads(answer)["app"].get("amContainerLogs") or "")
    if not found:
        raise HadoopError(f"{application_id} has no log yet: no node has started its application master")
    return found.group(2), found.group(1)


def container_log(container_id: str, address: str, stream: str, user: str) -> str:
    """What a container wrote to `stream`, asked of the NodeManager at `address`; HadoopError when it has no log."""
    url = f"http://{address}/ws/v1/node/containerlogs/{container_id}/{stream}?user.name={quote(user)}"
    return parse_contents(_get(url, f"the log of {container_id}"))


def parse_contents(answer: str) -> str:
    """The log itself out of a NodeManager's answer, which frames it.

    >>> parse_contents("LogType:stdout\\nLogContents:\\nhello\\n\\nEnd of LogType:stdout\\n****")
    'hello\\n'
    """
    found = _CONTENTS.search(answer)
    return found.group(1) if found else ""


def _get(url: str, what: str) -> str:
    try:
        with open_direct(url, _TIMEOUT_SECONDS) as answer:
            text: str = answer.read().decode(errors="replace")
            return text
    except HTTPError as error:
        error.close()
        raise HadoopError(f"{what} is not known there (status {error.code}): `nodewise job list` shows jobs") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise HadoopError(
            f"{what} cannot be asked for at {url} ({reason}): `nodewise cluster status` tells what is up"
        ) from error
