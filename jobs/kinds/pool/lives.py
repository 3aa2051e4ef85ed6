"""Leads each job of a pool from its wish to its end, and none of them waits for another."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from hadoop.errors import HadoopError
from infosvc.wire.errors import InfoError, InvalidInput
from jobs.application.coordinator import Knowledge
from jobs.application.master import say
from jobs.errors import JobError
from jobs.kinds.pool.pooled_job import PooledJob, State
from jobs.kinds.pool.workers import Workers
from locality.types import PlanError

SENTENCES = (HadoopError, InfoError, JobError, PlanError)
"""What carries a sentence for the user."""
MOST_TRIES = 5
"""How often a job begins or stores anew because HDFS or YARN has failed it."""
PAUSE_SECONDS = 0.1
AGAIN_SECONDS = 2.0
"""Before the first such try; before each further one four times as long: 170 s in all, as a NameNode may restart."""

ADMIT_SECONDS = 5.0
"""Between two questions what a node can do that is new to a job."""


class ReadyNodes(Knowledge):
    """What is known of the cluster, whose nodes are those that have a worker that is ready."""

    def __init__(self, known: Knowledge, workers: Workers) -> None:
        super().__init__(known.filesystem, known.client)
        self._workers = workers

    def nodes(self) -> list[str]:
        """Those of the workers, sorted."""
        return self._workers.ready()

    def start_seconds(self, parts: object, nodes: object, program: object) -> dict[str, float]:  # noqa: ARG002 all have
        """None begins later."""
        return {}


class Lives:
    """`on_end` hears of a job whose end is known. So many jobs as `most` have threads for HDFS and for the service."""

    def __init__(
        self, workers: Workers, knowledge: Knowledge, on_end: Callable[[PooledJob], None], most: int, pool_name: str
    ) -> None:
        self._workers = workers
        self._knowledge = ReadyNodes(knowledge, workers)
        self._on_end = on_end
        self._pool_name = pool_name
        self._threads = ThreadPoolExecutor(2 * most, thread_name_prefix="job")

    def begin(self, job: PooledJob) -> None:
        """A job is new, or goes on after its pool's master was lost."""
        self._threads.submit(self._begin, job)

    def wait(self) -> None:
        """Wait until no job is between two of its phases; none begins any more."""
        self._threads.shutdown()

    def kill(self, job: PooledJob) -> State:
        """End a job that is not storing its results; the state that it was in."""
        for state in (State.PLANNING, State.RUNNING):
            if job.move({state}, State.KILLED, "it was killed"):
                self._workers.remove_job(job)
                if state is State.RUNNING:
                    self._threads.submit(self._end, job)
                return state  # one that is being planned is ended by whoever plans it
        return job.state

    def look(self) -> None:
        """See what has become of the jobs that are at work."""
        for job in self._workers.jobs():
            job.tick()
            if job.fault:
                self._go_on_after(job.fault, job)
            elif job.is_done:
                if job.move({State.RUNNING}, State.STORING):
                    self._workers.remove_job(job)
                    self._threads.submit(self._store, job)
            elif self._is_alone(job):
                nodes = ", ".join(sorted(job.nodes))
                self._fail(job, self._no_worker_error(f"no worker of its nodes ({nodes})", job))
            elif time.monotonic() >= job.admits_at and (new := job.find_new(self._workers.ready())):
                job.admits_at = math.inf
                self._threads.submit(self._admit, job, new)

    def _admit(self, job: PooledJob, nodes: Sequence[str]) -> None:
        """Have workers take part in a job that were not ready when it was divided."""
        try:
            for node in nodes:
                with suppress(InvalidInput, JobError):  # nobody says yet what it can do
                    if job.admit(node):
                        self._workers.join(job, node)
        except Exception as error:  # of the service, which would not tell of the others either, or a fault of ours
            say(job.spec.job_id, f"workers that are ready now do not take part yet: {sentence_of(error)}")
        finally:
            job.admits_at = time.monotonic() + ADMIT_SECONDS

    def _begin(self, job: PooledJob) -> None:
        """Plan a job, and let the workers do it."""
        while not job.state.has_ended:
            try:
                self._wait_for_workers(job)
                job.begin(self._knowledge)
            except Exception as error:
                if isinstance(error, HadoopError) and job.tries < MOST_TRIES:
                    say(job.spec.job_id, f"begins again: {error}")
                    self._pause(job)
                    continue
                self._give_up(job, State.PLANNING, error)
            else:
                if job.move({State.PLANNING}, State.RUNNING):
                    self._workers.add_job(job)
                    if job.state is not State.RUNNING:  # it was killed just before that
                        self._workers.remove_job(job)
                    job.keep_record()
                    return
        self._end(job)

    def _begin_again(self, job: PooledJob) -> None:
        self._pause(job)
        self._begin(job)

    def _pause(self, job: PooledJob) -> None:
        """Give HDFS time, the longer the more often it has failed a job; a job that is killed waits no more."""
        until = time.monotonic() + AGAIN_SECONDS * 4 ** max(job.tries - 1, 0)
        while time.monotonic() < until and not job.state.has_ended:
            time.sleep(PAUSE_SECONDS)

    def _wait_for_workers(self, job: PooledJob) -> None:
        """JobError when none comes in time; a job that has a plan needs none, and may have nothing left to do."""
        if self._workers.ready() or job.has_plan():
            return
        until = time.monotonic() + job.wish.patience
        while not self._workers.ready() and not job.state.has_ended:
            if time.monotonic() > until:
                raise self._no_worker_error("no worker", job)
            time.sleep(PAUSE_SECONDS)

    def _no_worker_error(self, which: str, job: PooledJob) -> JobError:
        name = self._pool_name
        return JobError(
            f"{which} of the pool {name} was there for {job.wish.patience:.0f} s",
            remedy=f"`nodewise pool show {name}` tells why; submit it again, with --wait-for-pool for more patience",
        )

    def _is_alone(self, job: PooledJob) -> bool:
        """Whether for too long no node of a job has had a worker."""
        if job.is_done or self._workers.has_any(job.nodes):
            job.alone_since = None
            return False
        now = time.monotonic()
        job.alone_since = job.alone_since or now
        return now - job.alone_since > job.wish.patience

    def _go_on_after(self, fault: Exception, job: PooledJob) -> None:
        """Begin a job again where HDFS failed it; anything else ends it."""
        if isinstance(fault, HadoopError) and job.tries < MOST_TRIES:
            if job.move({State.RUNNING}, State.PLANNING):
                self._workers.remove_job(job)
                say(job.spec.job_id, f"begins again: {fault}")
                self._threads.submit(self._begin_again, job)
            return
        self._fail(job, fault)

    def _fail(self, job: PooledJob, why: Exception) -> None:
        if job.move({State.RUNNING}, State.FAILED, sentence_of(why)):
            self._workers.remove_job(job)
            self._threads.submit(self._end, job)

    def _store(self, job: PooledJob) -> None:
        """Put the results of a job in place; where HDFS fails it, it begins again with nothing left to do."""
        try:
            job.move({State.STORING}, State.SUCCEEDED, job.finish())
        except Exception as error:
            if isinstance(error, HadoopError) and job.tries < MOST_TRIES and job.move({State.STORING}, State.PLANNING):
                say(job.spec.job_id, f"stores again: {error}")
                self._begin_again(job)
                return
            self._give_up(job, State.STORING, error)
        self._end(job)

    def _give_up(self, job: PooledJob, state: State, why: Exception) -> None:
        """A job has failed for good; if all of it was done, that is kept, and its owner reads how to get it."""
        said = sentence_of(why)
        try:
            said = job.keep_work(said) if job.state is state else said
        except Exception as error:  # it has failed all the same
            say(job.spec.job_id, f"what it has done could not be kept: {sentence_of(error)}")
        job.move({state}, State.FAILED, said)

    def _end(self, job: PooledJob) -> None:
        """Keep what became of a job, and take its files away."""
        say(job.spec.job_id, f"{job.state.value}: {job.said}")
        for step in (job.settle, job.keep_record, lambda: self._on_end(job), lambda: self._take_away(job)):
            try:
                step()
            except Exception:  # what cannot be taken away now goes with the pool's own folder
                traceback.print_exc()

    def _take_away(self, job: PooledJob) -> None:
        self._knowledge.filesystem.delete(job.spec.staging)


def sentence_of(error: Exception) -> str:
    """What the user reads of an error; one that nobody has foreseen is printed with all that is known of it."""
    if isinstance(error, SENTENCES):
        return str(error)
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}"
