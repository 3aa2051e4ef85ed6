"""Work that is done and not stored: the folder of a job that failed with a row for every item, kept to be resumed.

The application master marks its staging folder once every item has its row. What cleans up leaves a marked folder of a
failed job alone, until it is old or there are too many.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from hadoop.client.filesystem import Entry, FileSystem
from hadoop.errors import HadoopError

MARK = "rows-complete.json"
KEPT_SECONDS = 7 * 86400.0
MOST_KEPT = 10


def mark(filesystem: FileSystem, staging: str, seconds: float) -> None:
    """Say that every item has its row, `seconds` after the job's work began."""
    filesystem.write(f"{staging}/{MARK}", json.dumps({"seconds": seconds}).encode(), mode=0o600)


def is_marked(filesystem: FileSystem, staging: str) -> bool:
    """Whether every item of a job has its row; False also when HDFS cannot say."""
    try:
        return filesystem.exists(f"{staging}/{MARK}")
    except HadoopError:
        return False


def seconds_of(filesystem: FileSystem, staging: str) -> float:
    """How long the work of a marked job took."""
    return float(json.loads(filesystem.read(f"{staging}/{MARK}"))["seconds"])


def with_remedy(reason: str, job_id: str) -> str:
    """Why a marked job failed, and how to get its results."""
    remedy = f"`nodewise job resume {job_id}`"
    return reason if remedy in reason else f"{reason}; all its work is done, and {remedy} stores it"


def worth_keeping(marked: Iterable[Entry], now: float) -> set[str]:
    """Names of the folders that are kept, the newest ones."""
    young = [one for one in marked if now - one.modified_at <= KEPT_SECONDS]
    return {one.name for one in sorted(young, key=lambda one: one.modified_at, reverse=True)[:MOST_KEPT]}
