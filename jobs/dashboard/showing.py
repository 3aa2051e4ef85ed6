"""What is shown of jobs: YARN's word, their application master's while they run, their report when they have ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from hadoop.errors import HadoopError
from hadoop.rest.webhdfs import WebHdfs
from jobs.application import job_record
from jobs.application.following import Sight, Watch
from jobs.application.job_record import JobRecord
from jobs.application.status import ContainerStatus, JobStatus
from jobs.dashboard.yarn import Known, RestYarn
from jobs.division import decision_store
from jobs.division.decision import Decision
from jobs.division.explanation import explanation, heading
from jobs.errors import JobError
from jobs.reports.pages import remarks
from jobs.reports.report import JobReport
from jobs.reports.timeline import KINDS, Bar, timeline

MOST_WATCHED = 64


class Reader:
    """A session as `kept.load` wants one, which reads HDFS and YARN over REST."""

    def __init__(self, filesystem: WebHdfs, yarn: RestYarn) -> None:
        self.filesystem: Any = filesystem
        self.yarn: Any = yarn

    def decision(self, job_id: str) -> Decision:
        """The record of a job's decision; JobError when there is none, HadoopError."""
        return decision_store.load(job_id, lambda: self)

    def record(self, job_id: str) -> JobRecord | None:
        """What is kept of a job of any kind; None when there is nothing that can be read now."""
        try:
            return job_record.load(self.filesystem, job_id)
        except (HadoopError, JobError):
            return None

    def containers(self, known: Known) -> tuple[ContainerStatus, ...]:
        """Those that the job's application master lists, or listed before it ended."""
        if seen := self.yarn.status(known.application):
            containers: tuple[ContainerStatus, ...] = seen.containers
            return containers
        record = self.record(known.application.application_id)
        return record.status.containers if record else ()

    def report(self, known: Known) -> JobReport:
        """What a job that succeeded left beside its results; JobError when it is not found there, HadoopError."""
        application = known.application
        if application.final != "SUCCEEDED":
            raise JobError("only a job that succeeded has a report")
        for output in decision_store.outputs(application.tags):
            path = f"{output}/report.json"
            if self.filesystem.exists(path):
                return _report(self.filesystem.read(path), path, application.application_id)
        raise JobError("its report is not where it was put, or its output's name is too long for YARN to keep")


class Watches:
    """What was last heard of the jobs that somebody looks at, so that a silent application master blanks nothing."""

    def __init__(self) -> None:
        self._watches: dict[str, Watch] = {}

    def look(self, known: Known, ask: Callable[[Any], JobStatus | None]) -> Sight:
        """A job as it is now."""
        job_id = known.application.application_id
        watch = self._watches.pop(job_id, None) or Watch(ask)
        self._watches[job_id] = watch
        for oldest in list(self._watches)[:-MOST_WATCHED]:
            self._watches.pop(oldest, None)
        return watch.look(known.application)


def row(known: Known) -> dict[str, Any]:
    """One job of the list."""
    application = known.application
    return {
        "job_id": application.application_id,
        "name": application.name,
        "user": known.user,
        "queue": known.queue,
        "state": application.state,
        "final": application.final,
        "ended": application.has_ended,
        "progress": application.progress,
        "started_at": known.started_at,
        "finished_at": known.finished_at,
        "said": application.diagnostics.partition("\n")[0],
        "output": next(iter(decision_store.outputs(application.tags)), None),
    }


def live(known: Known, sight: Sight) -> dict[str, Any]:
    """A job with what its application master says; `beyond_plan` are images that a node does of others' parts."""
    status = status_json(sight.status) if sight.status and not known.application.has_ended else None
    silent = sight.silent if status else None
    return row(known) | {"headline": sight.headline(), "silent_seconds": silent, "status": status}


def status_json(status: JobStatus) -> dict[str, Any]:
    """A status with what each node does beyond its part."""
    body = status.to_json()
    for node in body["nodes"]:
        node["beyond_plan"] = max(0, node["images"] + node["running"] - node["planned"])
    return body


def report_json(report: JobReport) -> dict[str, Any]:
    """report.json with what each node did of others' parts, remarks, and its leases as bars of a time line."""
    body = report.to_json()
    body.pop("leases")
    stolen = Counter[str]()
    for lease in report.leases:
        stolen[lease.node_name] += lease.images if lease.accepted and lease.stolen else 0
    for node in body["nodes"]:
        node["stolen_images"] = stolen[node["node_name"]]
    drawn = timeline(report)
    lanes = [
        {
            "node_name": lane.node_name,
            "bars": [_bar(bar) for bar in lane.bars],
            "refused": [_bar(bar) for bar in lane.refused],
            "failures": [asdict(failure) for failure in lane.failures],
            "said": lane.all.text() if lane.all else "no lease",
        }
        for lane in drawn.lanes
    ]
    line = {"seconds": drawn.seconds, "kinds": dict(KINDS), "lanes": lanes}
    return body | {"stolen_images": report.stolen_images, "remarks": remarks(report), "timeline": line}


def decision_json(decision: Decision, node: str | None) -> dict[str, Any]:
    """A decision as `nodewise job explain --json` prints it, with its heading in words; JobError for a strange node."""
    body = explanation(decision, node)
    return body | {"heading": heading(body)}


def outcome(reader: Reader, known: Known) -> dict[str, Any]:
    """`report`, or None and in `no_report` why there is none; neither before the job has ended.

    Of a job of a kind that has no output, `record` is what its application master said last.
    """
    none = {"report": None, "no_report": None, "record": None}
    if not known.application.has_ended:
        return none
    no_output = not decision_store.outputs(known.application.tags)
    if no_output and (record := reader.record(known.application.application_id)):
        return none | {"record": status_json(record.status)}
    try:
        return none | {"report": report_json(reader.report(known))}
    except (HadoopError, JobError) as error:
        return none | {"no_report": str(error)}


def _bar(bar: Bar) -> dict[str, Any]:
    return {"begin": bar.begin, "end": bar.end, "kind": bar.kind, "said": bar.text()}


def _report(content: bytes, path: str, job_id: str) -> JobReport:
    try:
        report = JobReport.from_json(json.loads(content))
    except ValueError as error:
        raise JobError(f"{path} is no report of a job: it is not JSON ({error})") from error
    if report.application_id != job_id:
        raise JobError(f"{path} is now the report of {report.application_id}, which wrote there later")
    return report
