"""What is shown of a job by its id, whatever its kind."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.table import Table

from hadoop.client.yarn import Application
from jobs.application import job_record
from jobs.application.job_record import JobRecord
from jobs.application.submit import Submitter
from jobs.division import decision_store
from jobs.errors import JobError
from jobs.job_ids import POOL_JOB


def of_other_kind(submitter: Submitter, job: str) -> JobRecord | None:
    """The record of a job that has no output of its own; None where `job` is an output, or has one."""
    if POOL_JOB.fullmatch(job):
        kept = _of_pool(submitter, job)
        return None if kept.status.state == "succeeded" else kept
    if not decision_store.JOB_ID.fullmatch(job):
        return None
    application = submitter.yarn.application(job)
    if decision_store.outputs(application.tags):
        return None
    record = job_record.load(submitter.filesystem, job)
    if record is None:
        raise JobError(f"nothing is kept of {job}", remedy="`nodewise job list` shows the jobs that YARN remembers")
    return record.with_end(application)


def output(submitter: Submitter, job: str) -> str:
    """The output of a job that is named by its id; an output stays as it is."""
    if POOL_JOB.fullmatch(job):
        return str((_of_pool(submitter, job).status.section or {})["Output"])
    if not decision_store.JOB_ID.fullmatch(job):
        return job
    if found := decision_store.outputs(submitter.yarn.application(job).tags):
        return found[0]
    raise JobError(f"{job} has no output whose report could be compared")


def _of_pool(submitter: Submitter, job: str) -> JobRecord:
    """The record of a job in a pool."""
    record = job_record.load(submitter.filesystem, job)
    if record is None:
        raise JobError(f"nothing is kept of {job}", remedy="`nodewise job list` shows the jobs of which anything is")
    return record


def table(record: JobRecord) -> Table:
    """What became of a job, node by node."""
    status = record.status
    found = Table("node", "state", "done", "said", title_justify="left", caption_justify="left")
    for node in status.nodes:
        found.add_row(node.node_name, node.state, f"{node.done} of {node.planned}", node.said)
    found.title = f"{status.job_id}, {status.kind}: {status.state}, {status.done} of {status.of} {status.unit}"
    found.caption = "\n".join(text for text in (record.said, *status.section_lines(), *status.news) if text)
    return found


def application_json(application: Application) -> dict[str, Any]:
    """What --json tells of a job as YARN knows it."""
    return asdict(application) | {"tags": sorted(application.tags), "kind": job_record.kind_of(application.tags)}
