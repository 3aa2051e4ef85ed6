"""The workers of a pool: which there are, and which job each lease that they take is of.

To a worker the jobs are one: the name of a lease says which one it belongs to, as in 3:1-17, and each job hears of
its own leases alone. An engine stays loaded from one lease to the next, whichever jobs these are of.

Single pictures are one more of these jobs, of weight 1, which takes its turn as the others do. Of the workers that ask
for work, or wait here for the answer, the one gets them that will be done first. A worker that has nothing to do waits
for up to a second, so that what comes meanwhile reaches it at once.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode

import msgspec

from jobs.application.calls import Caller, Gone, Request, decode_body, decode_query
from jobs.application.coordinator import Container, End, Seat, Then
from jobs.application.exits import Exit
from jobs.itemwork.calls import Commit, Died, Take, Working
from jobs.kinds.pool.pace import Pace
from jobs.kinds.pool.pictures import Pictures
from jobs.kinds.pool.pooled_job import PooledJob
from jobs.kinds.pool.sharing import Shares
from locality.leases import Answer

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 1.0
ASKS_PER_SECOND = 100.0
"""Of all workers together, while there is nothing to do."""
LONGEST_PATIENCE = 1.0
"""How long a worker that would wait is kept waiting: it has to tell that it is alive, too."""
CHOOSY_SECONDS = 0.5
"""So long a picture waits for the worker that will be done first, then whoever asks gets it."""
APART = ":"
UNKNOWN = {"answer": Answer.UNKNOWN.name.lower(), "why": "its job has ended"}


class Work(Protocol):
    """What workers do leases of: a job, or all single pictures; for those of `nodes` alone."""

    @property
    def name(self) -> str: ...

    @property
    def nodes(self) -> frozenset[str]: ...

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None: ...

    def on_start(self, container: Container) -> None: ...

    def on_end(self, container: Container, end: End) -> None: ...

    def is_suspect(self, container: Container) -> bool: ...

    def keep(self, seat: Seat) -> None: ...

    def pop_excused(self) -> Sequence[str]: ...


class Workers:
    """Safe for several threads. `clock` tells seconds as the application master counts them."""

    def __init__(self, clock: Callable[[], float], pictures: Pictures, pace: Pace) -> None:
        self._clock = clock
        self._pictures = pictures
        self._pace = pace
        self._lock = threading.RLock()
        self._waiting: dict[str, threading.Condition] = {}
        self._changes = 0
        self._containers: dict[str, Container] = {}
        self._heard: dict[str, float] = {}
        self._jobs: dict[str, PooledJob] = {}
        self._shares = Shares()
        self._excused: list[str] = []
        self._shares.add(pictures.name, pictures.weight)
        self._has_ended = False
        self._calls: Mapping[str, Callable[[Request], Mapping[str, Any] | None]] = {
            "/take": self._take,
            "/commit": self._commit,
            "/heartbeat": self._heartbeat,
            "/working": self._note_begin,
            "/died": self._note_death,
        }

    def add_job(self, job: PooledJob) -> None:
        """Workers may take leases of a job from now on."""
        with self._lock:
            for container in self._containers.values():
                job.on_start(container)
            self._jobs[job.name] = job
            self._shares.add(job.name, job.wish.weight)
            for one in self._jobs.values() if len(self._jobs) > 1 else ():
                one.note_shared()
            self._call_all()

    def join(self, job: PooledJob, node_name: str) -> None:
        """The worker of a node that a job has admitted may take leases of it."""
        with self._lock:
            if container := self._containers.get(node_name):
                job.on_start(container)
                self._call_all()

    def remove_job(self, job: PooledJob) -> None:
        """No worker gets a lease of a job any more, and those that they hold do not count."""
        with self._lock:
            if self._jobs.pop(job.name, None):
                self._shares.remove(job.name)

    def jobs(self) -> list[PooledJob]:
        """Those that workers may take leases of."""
        with self._lock:
            return list(self._jobs.values())

    def ready(self) -> list[str]:
        """The nodes whose worker has asked for work, sorted."""
        with self._lock:
            return sorted(self._heard)

    def has_any(self, nodes: frozenset[str]) -> bool:
        """Whether one of these nodes has a container."""
        with self._lock:
            return not nodes.isdisjoint(self._containers)

    def end(self) -> None:
        """Nothing more will come: workers hear that all is done."""
        with self._lock:
            self._has_ended = True
            self._call_all()

    def call(self) -> None:
        """A picture waits: of the workers that wait, the one that will be done first is to look."""
        with self._lock:
            self._changes += 1
            count, now = self._pictures.queue()[0], self._clock()
            if self._waiting:
                best = min(self._waiting, key=lambda node: self._pace.seconds_until_done(node, count, now, asks=True))
                self._waiting[best].notify()

    def on_start(self, container: Container) -> None:
        """A container is the worker of its node from now on."""
        with self._lock:
            self._containers[container.seat.node_name] = container
            self._heard.pop(container.seat.node_name, None)
            self._pace.forget(container.seat.node_name)
            works = self._works()
        for work in works:
            work.on_start(container)

    def on_end(self, container: Container, end: End) -> Then:
        """What a worker held goes back to its jobs.

        One that worked on suspected items of a job may have ended by these alone, so no other job suspects its own.
        """
        node = container.seat.node_name
        with self._lock:
            current = self._containers.get(node)
            if current and current.container_id == container.container_id:
                del self._containers[node]
                self._heard.pop(node, None)
                self._pace.forget(node)
            works = self._works()
        guilty = {work.name for work in works if end.exit.blames and work.is_suspect(container)}
        for work in works:
            is_other = guilty and work.name not in guilty
            work.on_end(container, replace(end, exit=Exit.RELEASED) if is_other else end)
            self._note_excused(work)
        return Then.EXPECTED if guilty else Then.AGAIN

    def pop_excused(self) -> Sequence[str]:
        """The containers whose end turned out to be the fault of an item of some job; each is told once."""
        with self._lock:
            found, self._excused = self._excused, []
        return found

    def give_back(self, seconds: float) -> None:
        """Single pictures of workers that have been silent for so long go to others, as leases of jobs do."""
        with self._lock:
            now = self._clock()
            silent = [node for node, heard in self._heard.items() if now - heard > seconds]
            for node in silent:
                self._pace.forget(node)
        for node in silent:
            self._pictures.give_back(node)

    def last_heard(self, seat: Seat) -> float:
        """When the worker of a node last said anything."""
        return self._heard.get(seat.node_name, -math.inf)

    def starting(self, seat: Seat) -> None:
        """A node keeps its parts of all jobs until its worker can begin."""
        for job in self.jobs():
            job.keep(seat)

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:
        """Answer a worker."""
        return self._calls[call](request)

    def _take(self, request: Request) -> Mapping[str, Any]:
        """A lease, at once or as soon as there is one, if the worker has patience."""
        call = decode_body(request.body, Take)
        until = time.monotonic() + min(call.patience, LONGEST_PATIENCE)
        while True:
            container = self._check(call)
            with self._lock:
                self._pace.keep(call.node_name, call.holding)
                changes = self._changes
            answer = self._give(call, container)
            left = until - time.monotonic()
            if "wait" not in answer or (left <= 0 and not call.patience):
                return answer
            if left <= 0:
                return {"wait": 0.0}
            self._wait(call.node_name, changes, min(left, answer["wait"]) if self._jobs else left)

    def _wait(self, node: str, changes: int, seconds: float) -> None:
        """Until there may be something for a node, unless there is since it was last looked."""
        with self._lock:
            if self._changes == changes:
                calls = self._waiting[node] = threading.Condition(self._lock)
                calls.wait(seconds)
                if self._waiting.get(node) is calls:
                    del self._waiting[node]

    def _call_all(self) -> None:
        """All workers that wait are to look; the lock is held."""
        self._changes += 1
        for calls in self._waiting.values():
            calls.notify()

    def _give(self, call: Take, container: Container) -> Mapping[str, Any]:
        """A lease of the job whose turn it is, or of the next that has anything for the node."""
        held = _by_job(call.holding)
        if self._has_ended:
            return {"done": True}
        waits = [min(max(SHORTEST_WAIT, len(self._containers) / ASKS_PER_SECOND), LONGEST_WAIT)]
        for work in self._in_turn(call.node_name):
            holding = held.get(work.name, [])
            if work is self._pictures and not self._is_to_have_pictures(call.node_name, holding):
                continue
            asked = Take(call.node_name, call.container_id, holding)
            answer = work.hear("/take", Request("", msgspec.json.encode(asked))) or {}
            if "lease" in answer:
                lease = {**answer["lease"], "lease": f"{work.name}{APART}{answer['lease']['lease']}"}
                self._charge(work, call.node_name, lease)
                self._keep_others(work, container.seat)
                return {"lease": lease}
            self._rest(work)
            waits.append(float(answer.get("wait", LONGEST_WAIT)))
        return {"wait": min(waits)}

    def _is_to_have_pictures(self, node: str, holding: Sequence[str]) -> bool:
        """Whether it is a worker's turn to have pictures, or it was given some in an answer that was lost."""
        return self._pictures.has_untold(node, holding) or self._is_first(node)

    def _is_first(self, node: str) -> bool:
        """Whether no other worker that may get the pictures that wait would be done with them before this one."""
        count, seconds = self._pictures.queue()
        if not count or seconds > CHOOSY_SECONDS:
            return True
        with self._lock:
            now, waiting = self._clock(), self._waiting
            mine = self._pace.seconds_until_done(node, count, now, asks=True)
            others = [one for one in self._heard if one != node and (one in waiting or self._pace.is_busy(one))]
            return all(mine <= self._pace.seconds_until_done(one, count, now, asks=one in waiting) for one in others)

    def _commit(self, request: Request) -> Mapping[str, Any]:
        call = decode_query(request.query, Commit)
        self._check(call)
        job, lease = self._find(call.lease)
        with self._lock:
            self._pace.end(call.node_name, call.lease, call.seconds)
        if job is None:
            return UNKNOWN
        query = urlencode({**dict(parse_qsl(request.query)), "lease": lease})
        return job.hear("/commit", request._replace(query=query)) or UNKNOWN

    def _heartbeat(self, request: Request) -> Mapping[str, Any]:
        call = decode_body(request.body, Caller)
        container = self._check(call)
        holding, others = [], []
        for job in self._of(call.node_name):
            answer = job.hear("/heartbeat", request) or {"holding": ()}
            holding += [f"{job.name}{APART}{lease}" for lease in answer["holding"]]
            if not answer["holding"]:
                others.append(job)
        for job in others if holding else ():  # its work on a lease of one job may be long
            job.keep(container.seat)
        return {"holding": holding}

    def _note_begin(self, request: Request) -> None:
        call = decode_body(request.body, Working)
        self._check(call)
        job, call.lease = self._find(call.lease)
        if job:
            job.hear("/working", Request("", msgspec.json.encode(call)))

    def _note_death(self, request: Request) -> Mapping[str, Any]:
        call = decode_body(request.body, Died)
        self._check(call)
        job, call.lease = self._find(call.lease)
        answer = job.hear("/died", Request("", msgspec.json.encode(call))) if job else None
        if job:
            self._note_excused(job)
        return answer or {"groups": [], "convicted": {}}

    def _note_excused(self, work: Work) -> None:
        """Items may have been convicted: a job may have ended before anybody asks."""
        with self._lock:
            self._excused += work.pop_excused()

    def _check(self, call: Caller) -> Container:
        """Note that a worker was heard; Gone when it is not the one of its node."""
        with self._lock:
            container = self._containers.get(call.node_name)
            if container is None or container.container_id != call.container_id:
                raise Gone(f"container {call.container_id} is not the one that works for {call.node_name}")
            self._heard[call.node_name] = self._clock()
            return container

    def _works(self) -> list[Work]:
        """The jobs, and the pictures."""
        return [self._pictures, *self.jobs()]

    def _look_up(self, name: str) -> Work | None:
        """A job that has not ended, or the pictures; the lock is held."""
        return self._pictures if name == self._pictures.name else self._jobs.get(name)

    def _find(self, lease: str) -> tuple[Work | None, str]:
        """The job of a lease, unless it has ended, and what that calls the lease."""
        name, _, own = lease.partition(APART)
        with self._lock:
            return self._look_up(name), own

    def _of(self, node_name: str) -> list[Work]:
        """The jobs that a node may work for."""
        return [work for work in self._works() if node_name in work.nodes]

    def _in_turn(self, node_name: str) -> list[Work]:
        with self._lock:
            found = [self._look_up(name) for name in self._shares.order()]
        return [work for work in found if work and node_name in work.nodes]

    def _charge(self, work: Work, node: str, lease: Mapping[str, Any]) -> None:
        """Count what a node was given, and have other workers look where pictures are left."""
        items = sum(len(group["items"]) for group in lease["groups"])
        with self._lock:
            self._pace.give(node, lease["lease"], items, self._clock())
            if self._look_up(work.name):
                self._shares.charge(work.name, items)
        if work is self._pictures:
            for job in self.jobs():
                job.note_shared()
            if self._pictures.queue()[0]:
                self.call()

    def _rest(self, work: Work) -> None:
        with self._lock:
            if self._look_up(work.name):
                self._shares.rest(work.name)

    def _keep_others(self, taken: Work, seat: Seat) -> None:
        """A node that does one job has not given up what waits for it of the others."""
        for job in self._of(seat.node_name):
            if job is not taken:
                job.keep(seat)


def _by_job(leases: Sequence[str]) -> dict[str, list[str]]:
    """What each job calls its own of these leases."""
    found: dict[str, list[str]] = {}
    for lease in leases:
        name, _, own = lease.partition(APART)
        found.setdefault(name, []).append(own)
    return found
