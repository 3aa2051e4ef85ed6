"""Finishes a job that failed although all its work was done: its results are stored from here, without YARN."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from hadoop.errors import HadoopError, UnknownApplication
from hadoop.rest.addresses import resourcemanager_addresses
from infosvc.wire.client import InfoClient
from jobs.application import attempts, job_record
from jobs.application.coordinator import Attempt, Coordinator, Knowledge, Outcome, Runner
from jobs.application.job_spec import JobSpec
from jobs.application.journal import Journal, last_attempt
from jobs.application.submit import Submitter
from jobs.division import kept_work
from jobs.errors import JobError
from jobs.job_ids import POOL_JOB


def resume(
    submitter: Submitter,
    job_id: str,
    client: InfoClient,
    find_kind: Callable[[str], Callable[[Attempt], Coordinator | Runner]],
) -> Outcome:
    """Store what a failed job has done, and take its folder away; JobError when it cannot be finished."""
    filesystem, staging = submitter.filesystem, submitter.staging(job_id)
    _check_ended(submitter, job_id)
    if not kept_work.is_marked(filesystem, staging):
        raise JobError(
            f"nothing of {job_id} is kept that could be stored",
            remedy="a job is kept for 7 days if it failed after all its work was done; submit it again",
        )
    spec = JobSpec.from_json(json.loads(filesystem.read(f"{staging}/job.json")))
    folder = attempts.journal_folder(spec)
    number = last_attempt(filesystem, folder) + 1
    with closing(Journal.open(filesystem, folder, number)) as journal:
        attempt = attempts.begin(spec, filesystem, client, journal, number)
    seconds = kept_work.seconds_of(filesystem, staging)
    outcome = _finish(find_kind(spec.kind)(replace(attempt, clock=lambda: seconds)), client, submitter)
    if record := job_record.load(filesystem, job_id):
        status = replace(record.status, state="succeeded", attempt=number)
        job_record.keep(filesystem, spec.owners_folder, job_record.JobRecord(status, outcome.message))
    filesystem.delete(staging)
    return outcome


def _finish(work: Coordinator | Runner, client: InfoClient, submitter: Submitter) -> Outcome:
    if isinstance(work, Runner):
        raise JobError("a job of this kind leaves nothing that could be stored", remedy="submit it again")
    work.roles(Knowledge(submitter.filesystem, client))
    progress = work.progress()
    if not progress.is_done:
        raise JobError(
            f"{progress.of - progress.done} of {progress.of} {progress.unit} are not done", remedy="submit it again"
        )
    return work.finish()


def _check_ended(submitter: Submitter, job_id: str) -> None:
    """JobError unless nobody can be storing the job's results now: YARN has ended it, or has forgotten it.

    A pool puts a job's folder there only when it has given up to store the results.
    """
    if POOL_JOB.fullmatch(job_id):
        return
    try:
        application = submitter.yarn.application(job_id)
    except UnknownApplication:
        return
    except HadoopError as error:
        where = " or ".join(resourcemanager_addresses(submitter.conf_dir))
        raise JobError(
            f"YARN at {where} does not say whether {job_id} has ended, and until then its application master may be "
            "storing the results",
            remedy="start YARN, or wait until it answers, and resume the job again",
        ) from error
    if not application.has_ended:
        raise JobError(f"{job_id} has not ended", remedy=f"`nodewise job status {job_id} --watch` follows it")
