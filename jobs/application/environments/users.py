"""Who uses an environment now, so that it is not taken away from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hadoop.client.yarn import Yarn
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.tasks import TaskState

_OPEN = tuple(state for state in TaskState if not state.is_final)
_PART = re.compile(r"sha256-([0-9a-f]{16})[0-9a-f]*\.sqfs")


@dataclass(frozen=True)
class Waiting:
    """Tasks that shall still start in an environment: those that one may see, and how many more there are.

    `others` is None where the service does not tell, for the reason `silence`.
    """

    task_ids: Sequence[str] = ()
    others: int | None = None
    silence: str = ""

    def name_all(self) -> list[str]:
        """As they are named to whoever would take the environment away.

        >>> Waiting(["task_1"], 1).name_all(), Waiting([], 0).name_all()
        (['task_1', '1 task of another user, which waits'], [])
        """
        if not self.others:
            return [*self.task_ids]
        more = "1 task of another user, which waits" if self.others == 1 else f"{self.others} waiting tasks of others"
        return [*self.task_ids, more]


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


def find_waiting_tasks(client: InfoClient, name: str, version: str, is_newest: bool) -> Waiting:
    """The tasks that shall still start in it, whosever they are; none are known where the service does not answer."""
    meant = [f"{name}@{version}", *([name] if is_newest else [])]
    try:
        seen = [one for one in client.tasks(states=_OPEN) if one.has_to_start and one.spec.env in meant]
    except InfoError as error:
        return Waiting(silence=error.message)
    task_ids = [one.task_id for one in seen]
    try:
        return Waiting(task_ids, max(0, client.count_starting_in(meant) - len(task_ids)))
    except InfoError as error:  # a service of an earlier version
        return Waiting(task_ids, silence=error.message)


def _tags(paths: Iterable[str]) -> list[str]:
    return [f"part={match[1]}" for path in paths if (match := _PART.search(path))]
