"""What applications have used, as YARN counts it: so much of each type of resource, for so many seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hadoop.rest.amounts import MEMORY, VCORES, Amounts


@dataclass(frozen=True)
class ApplicationUse:
    """One application; `seconds` are MB-seconds of memory, vcore-seconds, and so on, up to now if it still runs.

    Moments are Unix seconds, `finished_at` None if it has not ended.
    """

    application_id: str
    user: str
    queue: str
    tags: frozenset[str]
    started_at: float
    finished_at: float | None
    seconds: Amounts


def parse_use(row: Mapping[str, Any]) -> ApplicationUse:
    """Read one `app` of the ResourceManager's list.

    >>> row = {"id": "application_1_0001", "user": "ava", "queue": "root.default", "startedTime": 2000}
    >>> row |= {"memorySeconds": 512, "vcoreSeconds": 1, "resourceSecondsMap": {"entry": []}}
    >>> parse_use(row).seconds
    {'memory-mb': 512, 'vcores': 1}
    """
    usual = {MEMORY: int(row.get("memorySeconds") or 0), VCORES: int(row.get("vcoreSeconds") or 0)}
    entries = (row.get("resourceSecondsMap") or {}).get("entry") or ()
    others = {str(one["key"]): int(one["value"]) for one in entries}
    finished = row.get("finishedTime")
    return ApplicationUse(
        application_id=str(row["id"]),
        user=str(row.get("user") or ""),
        queue=str(row.get("queue") or ""),
        tags=frozenset(tag.strip() for tag in str(row.get("applicationTags") or "").split(",") if tag.strip()),
        started_at=float(row.get("startedTime") or 0) / 1000,
        finished_at=float(finished) / 1000 if finished else None,
        seconds=others | usual,
    )
