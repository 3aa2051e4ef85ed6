"""YARN's queue on a real ResourceManager: what waits in it, for what, and how it moves on."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from bench.stage import PATIENT
from hadoop.local.lifecycle import Cluster
from hadoop.rest.amounts import MEMORY
from hadoop.rest.resourcemanager import ResourceManager
from infosvc.wire.queues import WaitingApplication
from jobs.dashboard.queue.line import read_ended, read_line
from jobs.dashboard.queue.shown import look
from jobs.kinds.task.settings import UNBOUND
from tests.cluster.site import until
from tests.cluster.task_session import Tasks

RUNNER_MB = 384
QUEUE = "root.default"


@pytest.fixture
def manager(cluster: Cluster) -> ResourceManager:
    return ResourceManager(cluster.rm_http, cluster.user, PATIENT)


@pytest.fixture
def waiting(manager: ResourceManager) -> Callable[[], list[WaitingApplication]]:
    """waiting(): what waits now, as an admin is told of it."""
    return lambda: list(look(manager, {}, lambda: read_ended(manager)).answer.waiting)


def end_all(tasks: Tasks, *jobs: str) -> None:
    for job in jobs:
        tasks.ask("kill", job)  # which waits for its end


def inactive(found: list[WaitingApplication], jobs: list[str]) -> list[WaitingApplication]:
    """What waits, once it is these and YARN has said of each that it is not active; none before."""
    has_said = all(one.said and "not yet activated" in one.said for one in found)
    return found if has_said and [one.job_id for one in found] == jobs else []


def test_masters_at_their_limit_hold_up_others_until_one_ends(
    tasks: Tasks, manager: ResourceManager, waiting: Callable[[], list[WaitingApplication]]
) -> None:
    (queue,) = manager.scheduler().queues
    limit = min(queue.masters_most[MEMORY], queue.user_masters_most[MEMORY])
    memory_mb = limit // 4 - RUNNER_MB
    jobs = [tasks.submit("sleep", "600", memory_mb=memory_mb)[1] for _ in range(6)]
    try:
        first, second = until(lambda: inactive(waiting(), jobs[4:]))

        assert [(one.queue, one.position) for one in (first, second)] == [(QUEUE, 1), (QUEUE, 2)]
        assert (first.kind, first.memory_mb, first.vcores) == ("task", memory_mb + RUNNER_MB, 1)
        assert first.waits_for and re.match("room for (the )?application masters ", first.waits_for)
        (told,) = look(manager, {}, list).answer.queues
        assert (told.running, told.waiting) == (4, 2)

        end_all(tasks, jobs[0])
        until(lambda: [(one.job_id, one.position) for one in waiting()] == [(jobs[5], 1)])
    finally:
        end_all(tasks, *jobs)


def test_a_task_waits_for_room_on_the_only_node_that_it_may_use(
    tasks: Tasks, manager: ResourceManager, waiting: Callable[[], list[WaitingApplication]]
) -> None:
    node, total_mb = manager.rooms()[0].node_name, manager.rooms()[0].total_mb
    memory_mb = total_mb * 5 // 8 - RUNNER_MB
    jobs = [tasks.submit("sleep", "600", memory_mb=memory_mb, nodes=[node])[1]]
    try:
        until(lambda: [row.job_id for row in read_line(manager).seated] == jobs)
        jobs.append(tasks.submit("sleep", "600", memory_mb=memory_mb, nodes=[node])[1])
        asks = f"room on {node}, the only node that it may use: it asks for {memory_mb + RUNNER_MB:,} MB and 1 vcore"
        until(lambda: [one.job_id for one in waiting() if asks in str(one.waits_for)] == jobs[1:])

        end_all(tasks, jobs[0])
        until(lambda: waiting() == [])
    finally:
        end_all(tasks, *jobs)


def test_one_that_ended_is_remembered_with_the_time_that_it_ran(tasks: Tasks, manager: ResourceManager) -> None:
    _, job = tasks.submit("sleep", "3")
    assert tasks.ask("wait", job)["final"] == "SUCCEEDED"

    (known,) = [one for one in read_ended(manager) if one.job_id == job]

    assert known.ran is not None and known.ran >= 3.0


def test_why_the_submitter_has_killed_one_is_told_by_yarn(tasks: Tasks) -> None:
    _, job = tasks.submit("sleep", "600")

    tasks.ask("withdraw", job, UNBOUND)

    ended = tasks.ask("wait", job)
    assert ended["final"] == "KILLED" and UNBOUND in ended["diagnostics"]
