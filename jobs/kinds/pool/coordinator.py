"""Keeps a worker ready on each node, and leads jobs that users give it: several at once, and none harms another.

A job of a pool is planned, leased, journaled, stored and reported as one that has an application of its own. A single
picture is only looked at, and nothing is kept of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import msgspec

from hadoop.errors import HadoopError
from jobs.application.calls import Refused, Request, decode_body, decode_query
from jobs.application.coordinator import (
    Attempt,
    Container,
    Coordinator,
    End,
    Knowledge,
    NodeProgress,
    Outcome,
    Progress,
    Role,
    Seat,
    Then,
)
from jobs.application.journal import Record
from jobs.division import kept_work
from jobs.itemwork.calls import LARGEST
from jobs.itemwork.coordinator import SILENCES
from jobs.job_ids import pool_job_id
from jobs.kinds.pool.intake import Intake
from jobs.kinds.pool.lives import Lives, sentence_of
from jobs.kinds.pool.pace import Pace
from jobs.kinds.pool.pictures import Pictures
from jobs.kinds.pool.pooled_job import PooledJob, State, make_division
from jobs.kinds.pool.seats import Seats
from jobs.kinds.pool.settings import PoolSettings
from jobs.kinds.pool.wishes import (
    DOWN,
    IDLE_FOR,
    INFER,
    JOB,
    JOBS,
    KILL,
    READY,
    SUBMIT,
    USERS,
    Down,
    JobWish,
    OneJob,
    Picture,
    Refusal,
)
from jobs.kinds.pool.workers import Workers

TAKEN, KILLED, ENDED, DOWN_ASKED = "taken", "killed", "ended", "down"
"""Records of the journal: a job that was taken on, one that was killed, how one ended, and that the pool is to end."""
MOST_NODES = 100_000
MOST_KEPT = 100
"""Jobs that have ended of which the pool itself still tells."""
IDLE, WANTED = "it had no job or picture for {}", "it was ended by its owner"


class Pool(Coordinator):
    """One attempt at one pool; JobError when no worker can load what its jobs need."""

    calls: ClassVar[Mapping[str, int]] = {**LARGEST, **USERS}

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._settings = settings = PoolSettings.from_json(attempt.spec.settings)
        spec = replace(attempt.spec, kind=settings.of, settings=settings.job)
        self._sample = make_division(replace(attempt, spec=spec))
        of_jobs = self._sample.settings
        self._pictures = Pictures(settings.name, attempt.number, of_jobs.at_once, self._sample.find_flaw)
        pace = Pace(of_jobs.vcores, of_jobs.program.batch)
        self._workers = Workers(attempt.clock, self._pictures, pace)
        self._intake = Intake(attempt, settings, self._sample, self._workers)
        self._lives: Lives
        self._lock = threading.Lock()
        self._taking = threading.Lock()
        self._jobs: dict[int, PooledJob] = {}
        self._keys: dict[str, int] = {}
        self._items = 0
        self._ends: str | None = None
        self._busy_at = attempt.clock()
        self._broken: HadoopError | None = None
        self._users: Mapping[str, Callable[[Request], Mapping[str, Any]]] = {
            SUBMIT: self._submit,
            JOBS: lambda _: {"jobs": [_line(job) for job in self._all()]},
            JOB: self._tell,
            KILL: self._kill,
            DOWN: self._go_down,
            INFER: self._infer,
        }

    def roles(self, knowledge: Knowledge) -> Sequence[Role]:
        """A worker on each node, or on the best ones; jobs of an earlier attempt go on."""
        launch = self._sample.launches()
        self._lives = Lives(self._workers, knowledge, self._note_end, self._settings.most_jobs, self._settings.name)
        seats, most = Seats(self._attempt, knowledge, self._settings.best_by), self._settings.most_nodes
        self._take_up()
        silence = SILENCES * self._sample.settings.lease_seconds
        if most:
            first, spares = seats.nodes[:most], seats.nodes[most:]
            return (Role("worker", first, launch, silence, spares=spares, stands=True),)
        nodes = list(seats.nodes)
        return (Role("worker", nodes, launch, silence, most=MOST_NODES, admit=seats.admit, stands=True),)

    def on_start(self, container: Container) -> None:
        """A worker is there."""
        self._workers.on_start(container)

    def on_end(self, container: Container, end: End) -> Then:
        """A worker is lost: another one is asked for, and the jobs go on meanwhile."""
        return self._workers.on_end(container, end)

    def pop_excused(self) -> Sequence[str]:
        """The ends of workers that images were to blame for do not count against their nodes."""
        return self._workers.pop_excused()

    def last_heard(self, seat: Seat) -> float:
        """When a worker last said anything."""
        return self._workers.last_heard(seat)

    def starting(self, seat: Seat) -> None:
        """A node keeps its parts of all jobs until its worker can begin."""
        self._workers.starting(seat)

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:
        """Answer a worker or a user."""
        if call not in USERS:
            return self._workers.hear(call, request)
        try:
            return self._users[call](request)
        except Refusal as refusal:
            return refusal.to_json()
        except (Refused, HadoopError):
            raise
        except Exception as error:  # whatever a user asks for, the jobs of others go on
            return Refusal(sentence_of(error)).to_json()

    def tick(self) -> None:
        """See what has become of jobs and workers, and end when nobody has needed the pool for long."""
        self._lives.look()
        self._workers.give_back(self._sample.settings.lease_seconds)
        if self._broken:
            raise self._broken
        idle, now = self._settings.idle_seconds, self._attempt.clock()
        with self._lock:
            if self._at_work() or self._pictures.in_hand:
                self._busy_at = now
            elif self._ends is None and idle and now - self._busy_at >= idle:
                self._ends = IDLE.format(self._settings.idle_text)
            if self._is_over():
                self._workers.end()

    def progress(self) -> Progress:
        """Items of all jobs: those that are at work, and those that have ended."""
        jobs, done, of = self._workers.jobs(), self._items, self._items
        nodes: dict[str, NodeProgress] = dict.fromkeys(self._workers.ready(), NodeProgress(said=READY))
        for status in (job.status() for job in jobs):
            done, of = done + status.done, of + status.of
            for one in status.nodes:
                known = nodes.get(one.node_name, NodeProgress())
                nodes[one.node_name] = replace(
                    known,
                    planned=known.planned + one.planned,
                    done=known.done + one.done,
                    errors=known.errors + one.errors,
                    local=known.local + one.local,
                    running=known.running + one.running,
                )
        with self._lock:
            waiting, is_over = len(self._at_work()), self._is_over()
            idle = 0 if waiting or self._pictures.in_hand else int(self._attempt.clock() - self._busy_at)
        section = {"Pool": self._settings.name, "Jobs at work": waiting, "Jobs in all": len(self._keys), IDLE_FOR: idle}
        return Progress(done, of, self._sample.unit, nodes, section=section, is_open=not is_over)

    def finish(self) -> Outcome:
        """Nothing is left to be put in place: each job has its own results."""
        self._lives.wait()
        return Outcome(f"the pool {self._settings.name} has done {len(self._keys)} jobs: {self._ends}")

    def _take_up(self) -> None:
        """Go on with the jobs that an earlier attempt has taken on and not ended."""
        ended = {record.body["number"]: record.body for record in self._attempt.earlier if record.kind == ENDED}
        killed = {record.body["number"] for record in self._attempt.earlier if record.kind == KILLED}
        asked = [Down(**record.body) for record in self._attempt.earlier if record.kind == DOWN_ASKED]
        self._ends = WANTED if asked else None
        for record in self._attempt.earlier:
            if record.kind == TAKEN:
                number, wish = record.body["number"], msgspec.convert(record.body["wish"], JobWish)
                self._keys[wish.key] = number
                if number in ended:
                    self._items += ended[number]["items"]
                    continue
                files = record.body["files"]
                job = self._jobs[number] = PooledJob(self._attempt, self._settings, number, wish, files)
                if number in killed or (any(one.now for one in asked) and not self._has_all_rows(job)):
                    self._lives.kill(job)
                self._lives.begin(job)

    def _has_all_rows(self, job: PooledJob) -> bool:
        """Whether a job was storing its results, which may be in place: such a one is not killed."""
        return kept_work.is_marked(self._attempt.filesystem, job.spec.staging)

    def _submit(self, request: Request) -> Mapping[str, Any]:
        """Take a job on, or say why not."""
        wish, notes = decode_body(request.body, JobWish), list[str]()
        with self._lock:
            number, at_work = self._keys.get(wish.key), self._at_work()
        if number is None:
            wish, files = self._intake.check(wish, at_work, notes)
            with self._taking:  # whoever asks again while the first call is answered gets the same job
                number = self._keys.get(wish.key) or self._take(wish, files)
        return {"job_id": pool_job_id(self._attempt.spec.job_id, number), "notes": notes}

    def _take(self, wish: JobWish, files: int) -> int:
        """Record a job whose input has so many files, and begin it; its number."""
        with self._lock:  # from here on it is at work: the pool does not end while it is being recorded
            self._check_open()
            self._intake.check_room(wish, files, self._at_work())
            number = len(self._keys) + 1
            job = self._jobs[number] = PooledJob(self._attempt, self._settings, number, wish, files)
        self._note(Record(TAKEN, {"number": number, "wish": msgspec.to_builtins(wish), "files": files}))
        with self._lock:
            self._keys[wish.key] = number
        self._lives.begin(job)
        return number

    def _infer(self, request: Request) -> Mapping[str, Any]:
        """The row of a picture, as soon as a worker has looked at it."""
        wish = decode_query(request.query, Picture)
        if bool(wish.path) == bool(request.body):
            raise Refused("either the path of a picture in HDFS is needed, or a body that has its bytes")
        self._intake.check_workers()
        content, length = request.body or None, len(request.body)
        if wish.path:
            path, length = self._intake.find_picture(wish.path)
            wish = msgspec.structs.replace(wish, name=wish.name or wish.path, path=path)
        with self._lock:
            self._check_open()
            self._busy_at = self._attempt.clock()
        return {"row": self._pictures.ask(wish, content, length, self._workers.call)}

    def _check_open(self) -> None:
        """Refusal once the pool takes nothing more; the lock is held."""
        if self._ends is not None:
            name = self._settings.name
            raise Refusal(f"the pool {name} is going down: {self._ends}", "`nodewise pool up` starts another", True)

    def _tell(self, request: Request) -> Mapping[str, Any]:
        job = self._find(decode_body(request.body, OneJob))
        return {"status": job.status().to_json(), "said": job.said}

    def _kill(self, request: Request) -> Mapping[str, Any]:
        return {"was": self._end_now(self._find(decode_body(request.body, OneJob))).value}

    def _go_down(self, request: Request) -> Mapping[str, Any]:
        down = decode_body(request.body, Down)
        with self._lock:
            is_over = self._is_over()
        if not is_over:  # before anybody hears of it: the next attempt, if there is one, ends the pool, too
            self._note(Record(DOWN_ASKED, msgspec.to_builtins(down)))
        with self._lock:
            self._ends = self._ends or WANTED
            at_work = self._at_work()
        for job in at_work if down.now else ():
            self._end_now(job)
        return {"jobs": len(at_work)}

    def _end_now(self, job: PooledJob) -> State:
        """Kill a job, so that no later attempt goes on with it; the state that it was in."""
        was = self._lives.kill(job)
        if job.state is State.KILLED:
            self._note(Record(KILLED, {"number": job.number}))
        return was

    def _find(self, asked: OneJob) -> PooledJob:
        """One that is at work, or has ended lately."""
        for job in self._all():
            if job.spec.job_id == asked.job_id:
                return job
        raise Refusal(f"the pool {self._settings.name} knows no job {asked.job_id} any more")

    def _all(self) -> list[PooledJob]:
        with self._lock:
            return list(self._jobs.values())

    def _at_work(self) -> list[PooledJob]:
        """Those whose end is not recorded; the lock is held."""
        return [job for job in self._jobs.values() if not job.is_settled]

    def _is_over(self) -> bool:
        """Whether nothing more will come; the lock is held."""
        return self._ends is not None and not self._at_work() and not self._pictures.in_hand

    def _note_end(self, job: PooledJob) -> None:
        """Record how a job ended."""
        items = job.status().done
        self._note(Record(ENDED, {"number": job.number, "state": job.state.value, "said": job.said, "items": items}))
        with self._lock:
            self._items += items
            job.is_settled = True
            ended = [number for number, one in self._jobs.items() if one.is_settled]
            for number in ended[:-MOST_KEPT]:
                del self._jobs[number]

    def _note(self, record: Record) -> None:
        """Write into the pool's own journal; where that fails, the next attempt goes on."""
        try:
            self._attempt.journal.append(record)
        except HadoopError as error:
            self._broken = error
            raise


def _line(job: PooledJob) -> Mapping[str, Any]:
    """A job in a listing."""
    status = job.status()
    return {
        "job_id": job.spec.job_id,
        "state": job.state.value,
        "said": job.said,
        "output": job.wish.output,
        "weight": job.wish.weight,
        "done": status.done,
        "of": status.of,
        "errors": status.errors,
    }
