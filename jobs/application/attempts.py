"""Begins an attempt at a job from what stands in its journal."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping

from hadoop.client.filesystem import FileSystem
from hadoop.client.yarn import ATTEMPTS_WITHIN_MS
from infosvc.wire.client import InfoClient
from jobs.application.coordinator import Attempt
from jobs.application.job_spec import JobSpec
from jobs.application.journal import Journal, Record
from jobs.errors import JobError
from jobs.reports.report import Failure

BEGAN, FAILED, STARTED = "began", "failed", "started"
"""Records of the journal that are of no kind of job: an attempt has begun, a container has failed, or was started."""


def attempt_of(container_id: str) -> int:
    """Which attempt an application master's container belongs to; JobError for what is not an id of a container.

    >>> attempt_of("container_e17_1700000000000_0001_02_000001")
    2
    """
    name = re.fullmatch(r"container_(?:e\d+_)?\d+_\d+_(\d+)_\d+", container_id)
    if name is None:
        raise JobError(f"{container_id!r} is not the id of a container of YARN's")
    return int(name[1])


def journal_folder(spec: JobSpec) -> str:
    """Where the journal of a job lies in HDFS."""
    return f"{spec.staging}/journal"


def begin(spec: JobSpec, filesystem: FileSystem, client: InfoClient, journal: Journal, number: int) -> Attempt:
    """What stands in the journal, and the clock that goes on from there."""
    earlier = list(journal.earlier())
    began_at = next((float(record.body["at"]) for record in earlier if record.kind == BEGAN), time.time())
    journal.append(Record(BEGAN, {"at": began_at, "attempt": number, "now": time.time()}))
    return Attempt(
        number=number,
        spec=spec,
        filesystem=filesystem,
        client=client,
        journal=journal,
        journal_folder=journal_folder(spec),
        earlier=earlier,
        began_at=began_at,
        clock=clock_since(began_at),
        failures=[Failure(**record.body) for record in earlier if record.kind == FAILED],
    )


def begin_times(records: Iterable[Record]) -> dict[int, float]:
    """When each attempt began that these records tell of, in Unix seconds; of an older nodewise, when the job began."""
    began = (one.body for one in records if one.kind == BEGAN)
    return {int(body["attempt"]): float(body.get("now", body["at"])) for body in began}


def is_last(number: int, most: int, began: Mapping[int, float], now: float) -> bool:
    """Whether YARN starts no other attempt when this one fails now: it starts one up to `most` times in ten minutes.

    `began` tells when attempts began, this one too, in Unix seconds; whatever came before one had ended by then, and
    YARN has forgotten what ended ten minutes ago. Attempts that YARN ended itself (a lost node, a preemption) have a
    number, but do not count for YARN: then it might start one more than is taken for the last one here.

    >>> week = 604_800.0
    >>> is_last(2, 2, {1: 0.0, 2: 60.0}, 120.0), is_last(2, 2, {1: 0.0, 2: 60.0}, week)
    (True, False)
    """
    forgets = now - ATTEMPTS_WITHIN_MS / 1000
    first = max((one for one, at in began.items() if at < forgets), default=1)
    return number - first + 1 >= most


def clock_since(began_at: float) -> Callable[[], float]:
    """Seconds since the job's work began, in whichever attempt; never goes back within one."""
    before, started = max(0.0, time.time() - began_at), time.monotonic()
    return lambda: before + time.monotonic() - started
