"""Who uses an environment now, so that it is not taken away from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hadoop.client.yarn import Yarn
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.tasks import TaskState

_WAITING = (TaskState.WAITING, TaskState.QUEUED, TaskState.STARTING)
_PART = re.compile(r"sha256-([0-9a-f]{16})[0-9a-f]*\.sqfs")


def tags(parts: Mapping[str, str]) -> list[str]:
    """What YARN knows applications by that use these parts: it keeps no long tags.

    >>> tags({"/opt/env": "/nodewise/env/blobs/sha256-ca862998cc7fbe74ffff.sqfs"})
    ['part=ca862998cc7fbe74']
    """
    return _tags(parts.values())


def find_applications(yarn: Yarn, blobs: Iterable[str]) -> list[str]:
    """The applications that have not ended and use one of these files of HDFS; HadoopError."""
    found = {one.application_id for tag in _tags(blobs) for one in yarn.tagged(tag) if not one.has_ended}
    return sorted(found)


def find_waiting_tasks(client: InfoClient, name: str, version: str, is_newest: bool) -> list[str]:
    """The tasks that shall still start in it, of those that one may see; none where the service does not answer."""
    meant = {f"{name}@{version}"} | ({name} if is_newest else set())
    try:
        waiting = [one for one in client.tasks(states=_WAITING) if not one.application_id]
    except InfoError:
        return []
    return [one.task_id for one in waiting if one.spec.env in meant]


def _tags(paths: Iterable[str]) -> list[str]:
    return [f"part={match[1]}" for path in paths if (match := _PART.search(path))]
