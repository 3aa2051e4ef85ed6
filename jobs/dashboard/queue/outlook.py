"""When those that wait are expected to begin: what YARN and the service know, as a scene that is played forward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from hadoop.rest.resourcemanager import NodeRoom
from hadoop.rest.scheduler import LeafQueue, Size
from infosvc.wire.tasks import Task
from jobs.dashboard.queue.line import Line, Row
from jobs.queueing.estimate import Interval, estimate
from jobs.queueing.run_times import ENOUGH, Experience, Lasted, RunTimes
from jobs.queueing.scene import Hold, Node, Queue, Running, Scene, Waiting

TOO_FEW = f"not known: fewer than {ENOUGH} ended tasks and applications are remembered"
ASSUMED_MB = 1_024
"""What one asks for of which YARN does not tell."""

Tasks = Mapping[str, Task]
"""By id."""


def outlook(line: Line, ended: Sequence[Row], tasks: Tasks) -> Mapping[str, Interval | str]:
    """By the id of each application that waits: in how many seconds it begins, or why that is not known."""
    experience = Experience(lasted(line, ended, tasks))
    if experience.of("") is None:
        return {one.job_id: TOO_FEW for one in line.waiting}
    return estimate(make_scene(line, experience, tasks))


def lasted(line: Line, ended: Sequence[Row], tasks: Tasks) -> list[Lasted]:
    """What is known of run times: of what runs, what YARN remembers, and of tasks that it has forgotten the service."""
    found = [_lasted(one, tasks, has_ended=False) for one in line.seated if one.ran is not None]
    found += [_lasted(one, tasks, has_ended=True) for one in ended if one.ran is not None]
    told = {one.job_id for one in ended}
    kept = [task for task in tasks.values() if task.started_at and task.ended_at and task.application_id not in told]
    for task in sorted(kept, key=lambda one: -(one.ended_at or 0.0)):
        seconds = (task.ended_at or 0.0) - (task.started_at or 0.0)
        found.append(Lasted(seconds, f"root.{task.spec.queue}", task.spec.program or "", task.owner, task.name))
    return found


def make_scene(line: Line, experience: Experience, tasks: Tasks) -> Scene:
    """The cluster as the estimate sees it."""
    held = hold(line.seated, line.rooms)
    running = [
        Running(
            queue=one.known.queue,
            user=one.known.user,
            holds=held[one.job_id],
            master=Size(one.held_mb // max(1, one.containers), one.held_vcores // max(1, one.containers)),
            elapsed=one.ran or 0.0,
            runs=_runs(one, experience, tasks),
            at_most=_at_most(one, tasks),
        )
        for one in line.seated
    ]
    places = Counter[str]()
    order = []
    for one in line.waiting:
        order.append((places[one.known.queue], one))
        places[one.known.queue] += 1
    waiting = [
        Waiting(
            key=one.job_id,
            queue=one.known.queue,
            user=one.known.user,
            mb=one.mb or ASSUMED_MB,
            vcores=one.vcores or 1,
            runs=_runs(one, experience, tasks),
            label=one.label,
            nodes=one.hosts,
            is_active=one.is_active,
            at_most=_at_most(one, tasks),
        )
        for _, one in sorted(order, key=lambda found: found[0])  # the first of each queue first
    ]
    nodes = [
        Node(one.node_name, one.total_mb, one.total_vcores, one.free_mb, one.free_vcores, one.label)
        for one in line.rooms
    ]
    return Scene(nodes, [_queue(one) for one in line.scheduler.queues], running, waiting, line.counts_vcores)


def hold(seated: Sequence[Row], rooms: Sequence[NodeRoom]) -> dict[str, list[Hold]]:
    """What each has on which node. YARN tells the node of a master; other containers are where room is in use else."""
    left = {one.node_name: one.total_mb - one.free_mb for one in rooms}
    found: dict[str, list[Hold]] = {}
    for row in seated:
        mb, vcores = row.held_mb // max(1, row.containers), row.held_vcores // max(1, row.containers)
        found[row.job_id] = [Hold(row.node_name, mb, vcores)] if row.node_name else []
        left[row.node_name] = left.get(row.node_name, 0) - mb
    for row in seated:
        count = row.containers - len(found[row.job_id])
        for _ in range(max(0, count)):
            if not left:
                break
            mb, vcores = row.held_mb // row.containers, row.held_vcores // row.containers
            node = max(left, key=lambda name: left[name])
            left[node] -= mb
            found[row.job_id].append(Hold(node, mb, vcores))
    return found


def _lasted(row: Row, tasks: Tasks, has_ended: bool) -> Lasted:
    owner, name = _called(row, tasks)
    return Lasted(row.ran or 0.0, row.known.queue, row.program, owner, name, has_ended)


def _runs(row: Row, experience: Experience, tasks: Tasks) -> RunTimes:
    return experience.of(row.known.queue, row.program, *_called(row, tasks)) or RunTimes(())


def _called(row: Row, tasks: Tasks) -> tuple[str, str]:
    """Whose it is, and its name."""
    task = task_of(row, tasks)
    return (task.owner, task.name) if task else (row.known.user, row.known.application.name)


def _at_most(row: Row, tasks: Tasks) -> float | None:
    task = task_of(row, tasks)
    return task.spec.seconds_at_most if task else None


def task_of(row: Row, tasks: Tasks) -> Task | None:
    """The task of an application. Anybody may give theirs such a tag: once a task has one, it has no other."""
    task = tasks.get(row.task_id)
    return task if task and task.application_id in (None, row.job_id) else None


def _queue(queue: LeafQueue) -> Queue:
    return Queue(
        name=queue.name,
        share_mb=max(1, queue.share_mb),
        most_mb=queue.most_mb or inf,
        masters_most=queue.masters_most if queue.masters_most.mb else None,
        user_masters_most=queue.user_masters_most if queue.user_masters_most.mb else None,
        user_most_mb={one.name: one.most_mb for one in queue.users if one.most_mb},
    )
