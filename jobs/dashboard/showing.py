"""What is shown of jobs: YARN's word, their application master's while they run, their report when they have ended."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from hadoop.errors import HadoopError
from hadoop.rest.told import tell_end
from jobs.application import job_record
from jobs.application.following import Sight, Watch
from jobs.application.job_record import JobRecord, kind_of
from jobs.application.status import ContainerStatus, JobStatus
from jobs.dashboard.answers import (
    DrawnBar,
    DrawnLane,
    DrawnTimeline,
    ExplainedJob,
    Job,
    JobProgress,
    NodeProgress,
    Outcome,
    ReportedNode,
    WholeJob,
    WholeReport,
)
from jobs.dashboard.sources.eyes import Hdfs
from jobs.dashboard.sources.yarn import Known, RestYarn
from jobs.division import decision_store
from jobs.division.decision import Decision
from jobs.division.explanation import explanation, heading
from jobs.errors import JobError
from jobs.reports.pages import remarks
from jobs.reports.report import JobReport
from jobs.reports.timeline import KINDS, Bar, Lane, timeline

MOST_WATCHED = 64


class Reader:
    """A session as `decision_store.load` needs one; it reads HDFS and YARN over REST."""

    def __init__(self, filesystem: Hdfs, yarn: RestYarn) -> None:
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
    """What was last heard of the jobs that somebody looks at, so that a silent application master blanks nothing.

    Safe for several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: dict[str, Watch] = {}

    def look(self, known: Known, ask: Callable[[Any], JobStatus | None]) -> Sight:
        """A job as it is now."""
        job_id = known.application.application_id
        with self._lock:
            watch = self._watches.pop(job_id, None) or Watch(ask)
            self._watches[job_id] = watch
            for oldest in list(self._watches)[:-MOST_WATCHED]:
                del self._watches[oldest]
        return watch.look(known.application)


def row(known: Known) -> Job:
    """One job of the list."""
    application = known.application
    return Job(
        job_id=application.application_id,
        name=application.name,
        user=known.user,
        queue=known.queue,
        state=application.state,
        final=application.final,
        ended=application.has_ended,
        progress=application.progress,
        started_at=known.started_at,
        finished_at=known.finished_at,
        said=tell_end(application.diagnostics),
        output=next(iter(decision_store.outputs(application.tags)), None),
        kind=kind_of(application.tags),
    )


def live(known: Known, sight: Sight) -> WholeJob:
    """A job with what its application master says."""
    status = status_answer(sight.status) if sight.status and not known.application.has_ended else None
    silent = sight.silent if status else None
    return WholeJob(**vars(row(known)), headline=sight.headline(), silent_seconds=silent, status=status)


def status_answer(status: JobStatus) -> JobProgress:
    """A status with what each node does beyond its part."""
    nodes = tuple(NodeProgress(**vars(node)) for node in status.nodes)
    return JobProgress(**vars(status) | {"nodes": nodes})


def report_answer(report: JobReport) -> WholeReport:
    """A report with what each node did of others' parts, remarks, and its leases as bars of a time line."""
    stolen = tuple(lease for lease in report.leases if lease.is_accepted and lease.is_stolen)
    images = Counter[str]()
    for lease in stolen:
        images[lease.node_name] += lease.items
    nodes = tuple(ReportedNode(**vars(node), stolen_images=images[node.node_name]) for node in report.nodes)
    drawn = timeline(report)
    line = DrawnTimeline(drawn.seconds, dict(KINDS), tuple(_lane(lane, report.unit) for lane in drawn.lanes))
    # Of many leases only those are kept that are still counted, for the answer is remembered.
    kept = vars(report) | {"nodes": nodes, "leases": stolen}
    return WholeReport(**kept, remarks=tuple(remarks(report)), timeline=line)


def decision_answer(decision: Decision, node: str | None) -> ExplainedJob:
    """A decision as `nodewise job explain` explains it, with its heading; JobError for a strange node."""
    said = explanation(decision, node)
    return ExplainedJob(**vars(said), heading=tuple(heading(said)))


def outcome(reader: Reader, known: Known) -> Outcome:
    """The report of a job that has ended, or why there is none.

    Of a job of a kind that has no output, what its application master said last.
    """
    if not known.application.has_ended:
        return Outcome()
    no_output = not decision_store.outputs(known.application.tags)
    if no_output and (record := reader.record(known.application.application_id)):
        return Outcome(record=status_answer(record.with_end(known.application).status))
    try:
        return Outcome(report=report_answer(reader.report(known)))
    except (HadoopError, JobError) as error:
        return Outcome(no_report=str(error))


def _lane(lane: Lane, unit: str) -> DrawnLane:
    said = lane.all.text(unit) if lane.all else "no lease"
    bars, refused = (tuple(_bar(bar, unit) for bar in some) for some in (lane.bars, lane.refused))
    return DrawnLane(lane.node_name, bars, refused, lane.failures, said)


def _bar(bar: Bar, unit: str) -> DrawnBar:
    return DrawnBar(bar.begin, bar.end, bar.kind, bar.text(unit))


def _report(content: bytes, path: str, job_id: str) -> JobReport:
    try:
        report = JobReport.from_json(json.loads(content))
    except ValueError as error:
        raise JobError(f"{path} is not a report of a job: it is not JSON ({error})") from error
    if report.application_id != job_id:
        raise JobError(f"{path} is now the report of {report.application_id}, which wrote there later")
    return report
