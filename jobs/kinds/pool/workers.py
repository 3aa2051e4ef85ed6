"""The workers of a pool: which there are, and which job each lease that they take is of.

To a worker the jobs are one: the name of a lease says which one it belongs to, as in 3:1-17, and each job hears of
its own leases alone. An engine stays loaded from one lease to the next, whichever jobs these are of.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec

from jobs.application.calls import Caller, Gone, Request, decode_body, decode_query
from jobs.application.coordinator import Container, End, Seat, Then
from jobs.application.exits import Exit
from jobs.itemwork.calls import Commit, Died, Take, Working
from jobs.kinds.pool.pooled_job import PooledJob
from jobs.kinds.pool.sharing import Shares
from locality.leases import Answer

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 1.0
ASKS_PER_SECOND = 100.0
"""Of all workers together, while there is nothing to do."""
APART = ":"
UNKNOWN = {"answer": Answer.UNKNOWN.name.lower(), "why": "its job has ended"}


class Workers:
    """Safe for several threads. `clock` tells seconds as the application master counts them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._containers: dict[str, Container] = {}
        self._heard: dict[str, float] = {}
        self._jobs: dict[str, PooledJob] = {}
        self._shares = Shares()
        self._excused: list[str] = []
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

    def join(self, job: PooledJob, node_name: str) -> None:
        """The worker of a node that a job has admitted may take leases of it."""
        with self._lock:
            if container := self._containers.get(node_name):
                job.on_start(container)

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
        self._has_ended = True

    def on_start(self, container: Container) -> None:
        """A container is the worker of its node from now on."""
        with self._lock:
            self._containers[container.seat.node_name] = container
            self._heard.pop(container.seat.node_name, None)
            jobs = self.jobs()
        for job in jobs:
            job.on_start(container)

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
            jobs = self.jobs()
        guilty = {job.name for job in jobs if end.exit.blames and job.is_suspect(container)}
        for job in jobs:
            is_other = guilty and job.name not in guilty
            job.on_end(container, replace(end, exit=Exit.RELEASED) if is_other else end)
            self._note_excused(job)
        return Then.EXPECTED if guilty else Then.AGAIN

    def pop_excused(self) -> Sequence[str]:
        """The containers whose end turned out to be the fault of an item of some job; each is told once."""
        with self._lock:
            found, self._excused = self._excused, []
        return found

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
        """A lease of the job whose turn it is, or of the next that has anything for the node."""
        call = decode_body(request.body, Take)
        container = self._check(call)
        held = _by_job(call.holding)
        if self._has_ended:
            return {"done": True}
        waits = [min(max(SHORTEST_WAIT, len(self._containers) / ASKS_PER_SECOND), LONGEST_WAIT)]
        for job in self._in_turn(call.node_name):
            asked = Take(call.node_name, call.container_id, held.get(job.name, []))
            answer = job.hear("/take", Request("", msgspec.json.encode(asked))) or {}
            if "lease" in answer:
                self._charge(job, answer["lease"])
                self._keep_others(job, container.seat)
                return {"lease": {**answer["lease"], "lease": f"{job.name}{APART}{answer['lease']['lease']}"}}
            self._rest(job)
            waits.append(float(answer.get("wait", LONGEST_WAIT)))
        return {"wait": min(waits)}

    def _commit(self, request: Request) -> Mapping[str, Any]:
        call = decode_query(request.query, Commit)
        self._check(call)
        job, lease = self._find(call.lease)
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

    def _note_excused(self, job: PooledJob) -> None:
        """Items of a job may have been convicted: the job may have ended before anybody asks."""
        with self._lock:
            self._excused += job.pop_excused()

    def _check(self, call: Caller) -> Container:
        """Note that a worker was heard; Gone when it is not the one of its node."""
        with self._lock:
            container = self._containers.get(call.node_name)
            if container is None or container.container_id != call.container_id:
                raise Gone(f"container {call.container_id} is not the one that works for {call.node_name}")
            self._heard[call.node_name] = self._clock()
            return container

    def _find(self, lease: str) -> tuple[PooledJob | None, str]:
        """The job of a lease, unless it has ended, and what that calls the lease."""
        name, _, own = lease.partition(APART)
        with self._lock:
            return self._jobs.get(name), own

    def _of(self, node_name: str) -> list[PooledJob]:
        """The jobs that a node may work for."""
        return [job for job in self.jobs() if node_name in job.nodes]

    def _in_turn(self, node_name: str) -> list[PooledJob]:
        with self._lock:
            found = [self._jobs[name] for name in self._shares.order()]
        return [job for job in found if node_name in job.nodes]

    def _charge(self, job: PooledJob, lease: Mapping[str, Any]) -> None:
        items = sum(len(group["items"]) for group in lease["groups"])
        with self._lock:
            if job.name in self._jobs:
                self._shares.charge(job.name, items)

    def _rest(self, job: PooledJob) -> None:
        with self._lock:
            if job.name in self._jobs:
                self._shares.rest(job.name)

    def _keep_others(self, taken: PooledJob, seat: Seat) -> None:
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
