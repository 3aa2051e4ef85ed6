"""One job of a pool: a division of items like any other, with journal, folder and record of its own, but no container.

Whatever goes wrong in it is its own fault: it is noted here, and no call of a worker or of another job hears of it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from enum import Enum
from typing import Any

from hadoop.errors import HadoopError
from jobs.application import attempts, job_record
from jobs.application.calls import Gone, Refused, Request
from jobs.application.containers import NodeState
from jobs.application.coordinator import Attempt, Container, End, Knowledge, Progress, Seat
from jobs.application.job_record import JobRecord
from jobs.application.journal import Journal, Record, last_attempt
from jobs.application.master import status_of
from jobs.application.status import UNIT, JobStatus
from jobs.division import decision_store, kept_work
from jobs.errors import JobError
from jobs.itemwork.coordinator import SHARED, ItemCoordinator
from jobs.job_ids import pool_job_id
from jobs.kinds import find_kind
from jobs.kinds.pool.settings import PoolSettings
from jobs.kinds.pool.wishes import JobWish
from jobs.reports.report import Failure


def make_division(attempt: Attempt) -> ItemCoordinator:
    """The work of a job; JobError where its kind divides no items, which workers of a pool could do."""
    work = find_kind(attempt.spec.kind)(attempt)
    if not isinstance(work, ItemCoordinator):
        raise JobError(f"a pool cannot do jobs of the kind {attempt.spec.kind}: they divide no items")
    return work


class State(Enum):
    """Of a job; the value is what its status says."""

    PLANNING = "planning"
    RUNNING = "running"
    STORING = "storing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"

    @property
    def has_ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self in (State.SUCCEEDED, State.FAILED, State.KILLED)


class PooledJob:
    """Safe for several threads. `pool` is the attempt at being the pool's master, `number` counts its jobs from 1.

    Its input had so many `files` when it was taken on.
    """

    def __init__(self, pool: Attempt, settings: PoolSettings, number: int, wish: JobWish, files: int = 0) -> None:
        spec = pool.spec
        self.number, self.name, self.wish, self.files = number, str(number), wish, files
        self.spec = replace(
            spec,
            kind=settings.of,
            job_id=pool_job_id(spec.job_id, number),
            staging=f"{spec.staging}/jobs/{number}",
            settings={**settings.job, **wish.settings()},
            within=spec.job_id,
        )
        self.state, self.said = State.PLANNING, ""
        self.nodes: frozenset[str] = frozenset()
        self.fault: Exception | None = None
        self.alone_since: float | None = None
        self.admits_at = 0.0
        self.tries = 0
        self.is_settled = False
        self._is_shared = False
        self._pool = pool
        self._pool_name = settings.name
        self._lock = threading.Lock()
        self._attempt: Attempt | None = None
        self._journal: Journal | None = None
        self._work: ItemCoordinator | None = None
        self._last: JobStatus | None = None

    def move(self, before: Collection[State], after: State, said: str = "") -> bool:
        """Change the state if it is one of those; whether it was."""
        with self._lock:
            if self.state not in before:
                return False
            self.state, self.said = after, said
            return True

    def begin(self, knowledge: Knowledge) -> None:
        """Decide who does what, or go on with what an earlier attempt at this job has decided and done.

        Raises what stands against the job; HadoopError when it may go another time.
        """
        with suppress(HadoopError):  # what that journal has, it has
            self.close()
        self.fault, self.alone_since = None, None
        self.tries += 1
        pool, folder = self._pool, attempts.journal_folder(self.spec)
        number = last_attempt(pool.filesystem, folder) + 1
        self._journal = Journal.open(pool.filesystem, folder, number)
        self.take_up(attempts.begin(self.spec, pool.filesystem, pool.client, self._journal, number), knowledge)

    def take_up(self, attempt: Attempt, knowledge: Knowledge) -> None:
        """The same, once this attempt at the job has its journal."""
        self._attempt = attempt
        work = make_division(attempt)
        if self._is_shared:
            work.note_shared()
        nodes = frozenset[str]() if work.is_stored() else frozenset(work.divide(knowledge))
        with self._lock:
            self.nodes, self._work = nodes, work

    def has_plan(self) -> bool:
        """Whether an earlier attempt has divided it; HadoopError when HDFS does not tell."""
        return self._pool.filesystem.exists(f"{self.spec.staging}/{decision_store.NAME}")

    def find_new(self, nodes: Sequence[str]) -> list[str]:
        """Those of the nodes of which is not known what they can do for the job; none before it is divided."""
        work = self._work
        return [node for node in nodes if work.is_new(node)] if work else []

    def admit(self, node_name: str) -> bool:
        """Let a node take part that was not there when the job was divided; False when it can do nothing.

        JobError, InvalidInput or InfoError while nobody says what it can do.
        """
        work = self._work
        if work is None or not work.admit(node_name):
            return False
        with self._lock:
            if self._work is work:  # else it was divided anew meanwhile
                self.nodes |= {node_name}
            return self._work is work

    @property
    def is_done(self) -> bool:
        """Whether every item has its row."""
        work = self._work  # which another thread lets go of at the end of the job
        return work is not None and work.progress().is_done

    def note_shared(self) -> None:
        """Its workers do other jobs, too."""
        self._is_shared = True
        self._guard(lambda work: work.note_shared())

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:
        """What the job answers its worker; None also where it has no answer, because of a fault of its own."""
        work = self._work
        try:
            return work.hear(call, request) if work else None
        except Refused:
            raise
        except Gone:
            return None
        except Exception as error:
            self._note_fault(error)
            return None

    def on_start(self, container: Container) -> None:
        """A worker may work for it, if the job was divided among nodes of which its own is one."""
        if self._work and container.seat.node_name in self.nodes:
            self._guard(lambda work: work.on_start(container))

    def on_end(self, container: Container, end: End) -> None:
        """What the worker held is given back; that it ended stands in the job's report, and whether its node failed."""
        attempt, node = self._attempt, container.seat.node_name
        if attempt is None or node not in self.nodes:
            return
        counts = end.exit.counts and not (end.exit.blames and self.is_suspect(container))
        failure = Failure(node, container.container_id, end.exit.value, attempt.clock(), end.said, counts=counts)
        attempt.failures.append(failure)
        self._guard(lambda work: work.on_end(container, end))
        self._guard(lambda _: attempt.journal.append(Record(attempts.FAILED, asdict(failure))))

    def is_suspect(self, container: Container) -> bool:
        """Whether a worker does items of this job that are suspected of ending workers."""
        work = self._work
        return work is not None and container.seat.node_name in self.nodes and work.is_suspect(container)

    def pop_excused(self) -> Sequence[str]:
        """The containers whose end turned out to be the fault of an item of this job; each is told once."""
        work = self._work
        return work.pop_excused() if work and self.nodes else ()

    def keep(self, seat: Seat) -> None:
        """What waits for a node stays its own."""
        if seat.node_name in self.nodes:
            self._guard(lambda work: work.starting(seat))

    def tick(self) -> None:
        """A moment has passed."""
        if self.nodes:
            self._guard(lambda work: work.tick())

    def finish(self) -> str:
        """Put the results in place; what came of it, in a sentence."""
        if self._attempt:
            self._note_done(self._attempt)
        self.close()  # its rows are read from there
        return self._work.finish().message if self._work else ""

    def _note_done(self, attempt: Attempt) -> None:
        """Say in its folder that every item has its row, and lay there what resumes it: later HDFS may be full."""
        filesystem, staging = self._pool.filesystem, self.spec.staging
        if kept_work.is_marked(filesystem, staging):
            return
        if self._is_shared:
            attempt.journal.append(Record(SHARED))
        kept = replace(self.spec, staging=self._kept_at, token="")
        filesystem.write(f"{staging}/job.json", kept.to_bytes(), mode=0o600)
        kept_work.mark(filesystem, staging, attempt.clock())

    def keep_work(self, why: str) -> str:
        """Put what it has done where it outlives the pool, if every item has its row; why it failed, and what to do.

        HadoopError when that cannot be done.
        """
        filesystem, staging = self._pool.filesystem, self.spec.staging
        if not kept_work.is_marked(filesystem, staging):
            return why
        with suppress(HadoopError):
            self.close()
        filesystem.make_folder(staging, mode=0o700)  # the pool's own was what kept others out
        filesystem.rename(staging, self._kept_at)
        return kept_work.with_remedy(why, self.spec.job_id)

    @property
    def _kept_at(self) -> str:
        """Where a job that failed with all its work done waits to be resumed, as one with its own application does."""
        return f"{self.spec.owners_folder}/{self.spec.job_id}"

    def close(self) -> None:
        """End its journal, if it has one open."""
        journal, self._journal = self._journal, None
        if journal:
            journal.close()

    def status(self) -> JobStatus:
        """How far it is."""
        work, attempt = self._work, self._attempt
        if last := self._last:  # looked at after its work: that is let go of when there is a last status
            return replace(last, state=self.state.value)
        if work is None or attempt is None:
            return status_of(self.spec, self.state.value, 1, 0.0, replace(self._told(), unit=UNIT), ())
        progress = work.progress()
        busy = {name for name, did in progress.nodes.items() if did.running}
        waits = NodeState("waiting" if not self.state.has_ended else "done", 0, "")
        seats = {node: NodeState("working", 0, "") if node in busy else waits for node in progress.nodes}
        told = replace(progress, section=self._told().section)
        return status_of(self.spec, self.state.value, attempt.number, attempt.clock(), told, attempt.failures, seats)

    def settle(self) -> None:
        """It has ended: nothing is kept of it but its last status, as its plan may be large."""
        with suppress(HadoopError):
            self.close()
        self._last = self.status()
        self._work = None

    def keep_record(self) -> None:
        """Put what is known of it where it is found whatever becomes of the pool."""
        record = JobRecord(self.status(), self.said)
        job_record.keep(self._pool.filesystem, self.spec.owners_folder, record)

    def _told(self) -> Progress:
        """What a pool tells of each of its jobs beyond how far it is."""
        section = {"Pool": self._pool_name, "Output": self.spec.settings["output"], "Weight": self.wish.weight}
        return Progress(0, 0, UNIT, section=section)

    def _guard(self, do: Any) -> None:
        """Do something with the division of the job; what goes wrong is noted."""
        work = self._work
        try:
            if work:
                do(work)
        except Exception as error:
            self._note_fault(error)

    def _note_fault(self, error: Exception) -> None:
        if self.fault is None and self.state is State.RUNNING:
            self.fault = error
