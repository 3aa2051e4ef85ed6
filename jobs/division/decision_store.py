"""What is kept in the folder of a jobs' owner: the decision records of the newest jobs, and no leftovers of ended ones.

A decision record lies with its job's results as well.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from hadoop.client.filesystem import Entry, FileSystem
from hadoop.client.yarn import Application, Yarn
from hadoop.errors import HadoopError
from jobs.division import kept_work
from jobs.division.decision import Decision
from jobs.errors import JobError
from jobs.job_ids import POOL_JOB

NAME = "decision.json"
FOLDER = "decisions"
MOST_KEPT = 100
MOST_KEPT_BYTES = 256 * 1024 * 1024
TAG = "output="
LONGEST_TAG = 100
"""Characters, as YARN has it unless told otherwise."""
AS_IT_IS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789/-_.=")
JOB_ID = re.compile(r"application_\d+_\d+")
UNKNOWN_SECONDS = 3600.0
"""A folder of a job that YARN does not know must be so old: a job has its folder a moment before YARN knows it."""


class Session(Protocol):
    """What speaks to HDFS and YARN."""

    filesystem: FileSystem
    yarn: Yarn


def tags(output: str) -> list[str]:
    """Tags for YARN that name a job's output, which is a path without scheme; none when it is too long for one.

    YARN writes tags in small letters and takes ASCII only, so every other byte is written as %4f.
    """
    escaped = "".join(chr(byte) if byte in AS_IT_IS else f"%{byte:02x}" for byte in output.encode())
    return [TAG + escaped] if len(TAG + escaped) <= LONGEST_TAG else []


def outputs(tagged: Iterable[str]) -> list[str]:
    """Inverse of `tags`; what was tagged before bytes were escaped is read as it is."""
    return [unquote(tag.removeprefix(TAG)) for tag in tagged if tag.startswith(TAG)]


def keep(filesystem: FileSystem, owners_folder: str, job_id: str, content: bytes, below: str = FOLDER) -> None:
    """Put a job's record where it is found whatever becomes of the job, and let go of the ones written longest ago.

    Of jobs in pools, which are many and short, as many are kept as of all others, beside these.

    Only its owner may read it there: of a job that failed, nobody has seen anything yet.
    """
    folder = f"{owners_folder}/{below}"
    filesystem.make_folder(folder, mode=0o700)
    filesystem.write(f"{folder}/{job_id}.json", content, mode=0o600)
    total, is_in_pool = 0, POOL_JOB.fullmatch(job_id) is not None
    kept = (one for one in filesystem.entries(folder) if one.name.startswith("pool_") == is_in_pool)
    newest_first = sorted(kept, key=lambda entry: (entry.modified_at, _age_order(entry.name)), reverse=True)
    for number, entry in enumerate(newest_first, start=1):
        total += entry.size_bytes
        if number > 1 and (number > MOST_KEPT or total > MOST_KEPT_BYTES):
            filesystem.delete(f"{folder}/{entry.name}")


def sweep(session: Session) -> None:
    """Delete what jobs that have ended left in their owner's folder, but work that can be resumed.

    A job that succeeded left nothing to resume: its application master was ended as it took its files away.

    What cannot be asked or deleted now stays.
    """
    with suppress(HadoopError):
        folder, now = f"{session.filesystem.home()}/.nodewise", time.time()
        entries = session.filesystem.entries(folder)
        found = [one for one in entries if JOB_ID.fullmatch(one.name) or POOL_JOB.fullmatch(one.name)]
        known = session.yarn.applications() if found else []
        ended = leftovers(found, known, now)
        succeeded = {one.application_id for one in known if one.final == "SUCCEEDED"}
        folders = [one for one in found if one.name in ended and one.name not in succeeded]
        marked = [one for one in folders if kept_work.is_marked(session.filesystem, f"{folder}/{one.name}")]
        for name in set(ended) - kept_work.worth_keeping(marked, now):
            session.filesystem.delete(f"{folder}/{name}")


def leftovers(folders: Iterable[Entry], known: Iterable[Application], now: float) -> list[str]:
    """Names of the folders, each called as its job, of jobs that YARN says have ended or does not know any more."""
    ended = {application.application_id: application.has_ended for application in known}
    return [one.name for one in folders if ended.get(one.name, now - one.modified_at > UNKNOWN_SECONDS)]


def load(where: str, connect: Callable[[], Session]) -> Decision:
    """The record in a file of this machine, or of a job id, or of a path of HDFS (an output, or the file itself).

    Only the latter two `connect`. JobError when there is no record, or none that can be read; HadoopError.
    """
    if Path(where).is_file():
        return Decision.from_bytes(_read_local(where), where)
    is_job = JOB_ID.fullmatch(where) or POOL_JOB.fullmatch(where)
    if not (is_job or where.startswith(("/", "hdfs:"))):
        raise JobError(
            f"{where} is not a file here, a job id or a path of HDFS",
            remedy=(f"give application_1700000000000_0001, a job's output such as hdfs:///out/run1, or a {NAME}"),
        )
    session = connect()
    path = _of_job(session, where) if is_job else _of_path(session.filesystem, where)
    return Decision.from_bytes(session.filesystem.read(path), path)


def _read_local(where: str) -> bytes:
    try:
        return Path(where).read_bytes()
    except OSError as error:
        raise JobError(f"{where} cannot be read: {error.strerror}") from error


def _of_path(filesystem: FileSystem, where: str) -> str:
    path = where if where.endswith(".json") else f"{where.rstrip('/')}/{NAME}"
    if not filesystem.exists(path):
        raise JobError(
            f"{path} is not in HDFS", remedy="`nodewise job list` shows the jobs, `job explain` also takes their ids"
        )
    return path


def _of_job(session: Session, job_id: str) -> str:
    kept = f"{session.filesystem.home()}/.nodewise/{FOLDER}/{job_id}.json"
    if session.filesystem.exists(kept):
        return kept
    try:
        application = session.yarn.application(job_id)
    except HadoopError as error:
        raise JobError(
            f"no record of {job_id} is kept, and YARN does not know it", remedy="name its output instead"
        ) from error
    for path in (f"{output}/{NAME}" for output in outputs(application.tags)):
        if session.filesystem.exists(path):
            return path
    if application.final == "SUCCEEDED":
        raise JobError(f"the record of {job_id} is no longer kept by its id", remedy="name the job's output instead")
    reason = application.diagnostics.split("\n", maxsplit=1)[0] or f"it is {application.state.lower()}"
    raise JobError(f"{job_id} has no plan to explain: {reason}")


def _age_order(name: str) -> tuple[int, ...]:
    """Sorts job ids as YARN counts them: by the start of the ResourceManager, by number, and in a pool by the job."""
    return tuple(int(digits) for digits in re.findall(r"\d+", name))
