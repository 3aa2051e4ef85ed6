"""Jobs and a path of HDFS without a cluster: invented facts, put into words and numbers by the board's own code.

The answers are the records of `jobs.dashboard.answers`; tests/web/test_real_cluster.py looks at the real ones.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from flask import Response, jsonify, request
from flask.typing import ResponseReturnValue

from hadoop.client import arrow_table
from hadoop.client.blocks import BlockState, StoredBlock, StoredFile
from hadoop.client.listing import Stamp, Summary
from hadoop.client.snapshots import Folder, Snapshot
from hadoop.client.yarn import Application
from infosvc.http.api.call_group import PREFIX, CallGroup, Route
from infosvc.http.api.exchange import latest
from infosvc.wire.errors import NotFound
from infosvc.wire.fields import answer_of
from infosvc.wire.queues import ClusterQueues, ExpectedStart, MastersLimit, QueueUser, WaitingApplication, YarnQueue
from infosvc.wire.records import Role
from infosvc.wire.tasks import EXAMPLE_ID
from jobs.application.following import Sight
from jobs.application.status import JobStatus, NodeStatus
from jobs.dashboard import planning, showing
from jobs.dashboard.answers import EndedJob, Ending, JobContainer, Jobs, LogContainers, LogPiece
from jobs.dashboard.sources.yarn import Known
from jobs.division import decision_store
from jobs.reports.report import JobReport
from tests.jobs.decisions import decide
from tests.web.invented_pools import InventedPools
from tests.web.invented_tasks import InventedTasks

REPORT = Path(__file__).resolve().parents[1] / "fixtures" / "report_sample.json"
NODES = ("n1", "n2", "n3")
RUNNING, ENDED, COPIED, FAILED = (f"application_1700000000000_000{number}" for number in (3, 2, 4, 1))
COPIES = JobStatus(
    *(COPIED, "succeeded", 1, 2, 2, 0, 3.0, None),
    tuple(NodeStatus(name, "done", 1, 1, 0, 0, 0, 0.0, said="exit code 0") for name in ("n1", "n2")),
    kind="command",
    unit="copies",
    section={"Program": "./program"},
)
LOG = "127.0.0.1 began\n<b>3 of 40</b> pictures\n"


@dataclass
class Invented:
    """A cluster's word on four jobs, one of which runs; tests may change it while pages look at it."""

    done: int = 12
    ending: Ending | None = None
    status: JobStatus | None = None
    """What the running job's application master says, if it is not a job that classifies."""
    tasks: InventedTasks = field(default_factory=InventedTasks)
    pools: InventedPools = field(default_factory=InventedPools)
    jobs: dict[str, Known] = field(default_factory=lambda: {one.application.application_id: one for one in _jobs()})
    queues: ClusterQueues = field(default_factory=lambda: _queues())

    def calls(self) -> CallGroup:
        """The board's calls."""
        views = {
            "/path": self.path,
            "/jobs": self.all,
            "/jobs/<job_id>": self.job,
            "/jobs/<job_id>/logs": self.logs,
            "/jobs/<job_id>/decision": self.decision,
            **self.pools.views(),
        }
        made = [Route(PREFIX + rule, view.__name__, _plain(view), Role.READER) for rule, view in views.items()]
        made.append(Route(f"{PREFIX}/queue", "queue", _plain(self.queue), Role.USER))
        made.append(Route(f"{PREFIX}/jobs/<job_id>", "end", _plain(self.end), Role.ADMIN, "DELETE"))
        for rule, view in self.tasks.views().items():
            made.append(Route(PREFIX + rule, view.__name__, _plain(view), Role.USER))
        return CallGroup("board", routes=tuple(made))

    def finish(self, final: str) -> None:
        """The running job ends so."""
        state = "KILLED" if final == "KILLED" else "FINISHED"
        known = self.jobs[RUNNING]
        application = replace(known.application, state=state, final=final, progress=1.0)
        self.jobs[RUNNING] = replace(known, application=application, finished_at=time.time())

    def path(self) -> ResponseReturnValue:
        """GET /path."""
        if request.args["path"] != "/data/images":
            raise NotFound(f"{request.args['path']} is not in HDFS")
        return _answer(planning.path_view(_snapshot(), NODES, latest(), request.args.get("capability")))

    def all(self) -> ResponseReturnValue:
        """GET /jobs."""
        return _answer(Jobs(tuple(map(showing.row, self.jobs.values()))))

    def job(self, job_id: str) -> ResponseReturnValue:
        """GET /jobs/ID."""
        known = self._known(job_id)
        is_mine, has_ended = job_id == RUNNING, known.application.has_ended
        status = (self.status or _status(self.done)) if is_mine and not has_ended else None
        shown = showing.live(known, Sight(known.application, status))
        report = showing.report_answer(_report()) if job_id == ENDED else None
        none = None if report or not known.application.has_ended else "only a job that succeeded has a report"
        left = COPIES if job_id == COPIED else self.status if is_mine and has_ended else None
        record = showing.status_answer(left) if left else None
        ending = self.ending if job_id == RUNNING else None
        return _answer(replace(shown, report=report, no_report=none, record=record, ending=ending))

    def queue(self) -> ResponseReturnValue:
        """GET /queue: what is expected stays as far away as it was when it was invented."""
        now = time.time()
        waiting = tuple(_later(one, now - self.queues.time) for one in self.queues.waiting)
        return _answer(replace(self.queues, time=now, waiting=waiting))

    def logs(self, job_id: str) -> ResponseReturnValue:
        """GET /jobs/ID/logs."""
        ended = self._known(job_id).application.has_ended
        master = JobContainer("container_1_0003_01_000001", "n1", "master", "")
        if "container" not in request.args:
            return _answer(LogContainers(job_id, ended, ("stdout", "stderr"), (master,)))
        offset, name = int(request.args.get("offset", 0)), master.container_id
        stream, text = request.args["stream"], LOG[offset:]
        return _answer(LogPiece(job_id, ended, name, "n1", stream, offset, len(LOG), False, text))

    def decision(self, job_id: str) -> ResponseReturnValue:
        """GET /jobs/ID/decision."""
        self._known(job_id)
        return _answer(showing.decision_answer(decide(), None))

    def end(self, job_id: str) -> ResponseReturnValue:
        """DELETE /jobs/ID."""
        self._known(job_id)
        self.ending = Ending("asked")
        return _answer(EndedJob(job_id, self.ending)), 202

    def _known(self, job_id: str) -> Known:
        if job_id not in self.jobs:
            raise NotFound(f"YARN knows no {job_id}")
        return self.jobs[job_id]


def _answer(record: Any) -> Response:
    return jsonify(answer_of(record))


def _plain(view: Any) -> Any:
    """A function of its own for each view, because methods take no attributes."""

    def call(**named: str) -> ResponseReturnValue:
        answer: ResponseReturnValue = view(**named)
        return answer

    return call


def _jobs() -> list[Known]:
    now = time.time()

    def known(job_id: str, state: str, final: str, progress: float, said: str, ended: float | None) -> Known:
        tags = frozenset({f"{decision_store.TAG}/out/{job_id[-1]}"})
        application = Application(job_id, "nodewise", state, final, progress, said, "N/A", now - 90, tags)
        return Known(application, "me", "default", now - 90, ended)

    return [
        known(RUNNING, "RUNNING", "UNDEFINED", 0.3, "", None),
        known(ENDED, "FINISHED", "SUCCEEDED", 1.0, "", now - 60),
        known(COPIED, "FINISHED", "SUCCEEDED", 1.0, "", now - 65),
        known(FAILED, "FINISHED", "FAILED", 0.0, "no node has a fresh <perf_cpu>", now - 70),
    ]


def _queues() -> ClusterQueues:
    """Three that wait in one queue: a task of the admin's, another's, and one of which too little is known."""
    now = time.time()
    users = (QueueUser("me", 4096, 8192),)
    full, free = MastersLimit("memory-mb", 4096, 4096, is_full=True), MastersLimit("memory-mb", 0, 1024, is_full=False)
    default = YarnQueue("root.default", "RUNNING", 0.75, 0.5, 1.0, 4096, 4096, 4, 3, users, full)
    small = YarnQueue("root.small", "STOPPED", 0.25, 0.0, 0.25, 0, 1024, 0, 0, (), free)
    limit = "room for application masters in root.default, tasks included: they have 4,096 of at most 4,096 MB"
    asks: dict[str, Any] = {"memory_mb": 1024, "vcores": 1, "since": now - 100, "said": "Application is Activated"}
    asks |= {"resources": {"yarn.io/gpu": 2}}
    first = WaitingApplication(
        queue="root.default",
        position=1,
        own=True,
        job_id=RUNNING,
        task_id=EXAMPLE_ID,
        kind="task",
        is_job=True,
        name="mnist <b>2</b>",
        owner="admin",
        waits_for=limit,
        start=ExpectedStart(now + 125, now + 530),
        **asks,
    )
    last = replace(
        first, position=3, own=False, job_id=ENDED, task_id=None, kind="command", name="theirs", owner="you", start=None
    )
    unknown = "not known: fewer than 10 ended tasks and applications are remembered"
    waiting = (first, WaitingApplication(queue="root.default", position=2), replace(last, no_start=unknown))
    return ClusterQueues(now, "capacity", "", (default, small), waiting, True, 1)


def _later(one: WaitingApplication, seconds: float) -> WaitingApplication:
    start = one.start and ExpectedStart(one.start.earliest + seconds, one.start.latest + seconds)
    return replace(one, start=start)


def _status(done: int) -> JobStatus:
    nodes = (
        NodeStatus("n1", "working", 20, done, 0, done, 2, 4.5),
        NodeStatus("n2", "lost", 20, 0, 0, 0, 0, 0.0, 1, "its container was lost"),
    )
    news = ("n2 was lost, its images go to the others",)
    return JobStatus(RUNNING, "running", 1, 40, done, 0, 30.0, 60.0, nodes, news, kind="classify", unit="images")


def _report() -> JobReport:
    body: dict[str, Any] = json.loads(REPORT.read_text())
    return JobReport.from_json(body | {"application_id": ENDED})


def _snapshot() -> Snapshot:
    """Nine files of one block, each on two of three nodes, and one that no live node holds."""
    files = [
        StoredFile(
            f"/data/images/{number}.jpg", 1000 * (number + 1), (StoredBlock(0, 1000 * (number + 1), holders),), 2
        )
        for number, holders in enumerate((NODES[one % 3], NODES[(one + 1) % 3]) for one in range(9))
    ]
    files.append(StoredFile("/data/images/gone.jpg", 500, (StoredBlock(0, 500, (), state=BlockState.MISSING),), 2))
    table = pa.Table.from_batches([arrow_table.from_files(files)], arrow_table.SCHEMA)
    size = sum(file.size_bytes for file in files)
    folder = Folder(Stamp(1, 1), "", len(files), size, 2 * size, table.num_rows, (), True)
    racks = dict.fromkeys(NODES, "/default-rack")
    totals = Summary(len(files), 1, size, 2 * size)
    return Snapshot("/data/images", time.time(), totals, racks, {"/data/images": folder}, table)
