"""When those that wait are expected to begin: what YARN and the service know, as a scene that is played forward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hadoop.rest.amounts import MEMORY, VCORES, Amounts, split, subtract
from hadoop.rest.resourcemanager import NodeRoom
from hadoop.rest.scheduler import LeafQueue
from infosvc.wire.tasks import Task
from jobs.dashboard.queue.line import Line, Row
from jobs.queueing.estimate import Interval, estimate
from jobs.queueing.run_times import ENOUGH, Experience, Lasted, RunTimes
from jobs.queueing.scene import Hold, Node, Queue, Running, Scene, Waiting

TOO_FEW = f"not known: fewer than {ENOUGH} ended tasks and applications are remembered"
ASSUMED: Amounts = {MEMORY: 1_024, VCORES: 1}
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
            master=held_by_master(one),
            elapsed=one.ran or 0.0,
            runs=_runs(one, experience, tasks),
            at_most=_at_most(one, tasks),
            label=one.label,
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
            asks=one.asks or ASSUMED,
            runs=_runs(one, experience, tasks),
            label=one.label,
            nodes=one.hosts,
            is_active=one.is_active,
            at_most=_at_most(one, tasks),
        )
        for _, one in sorted(order, key=lambda found: found[0])  # the first of each queue first
    ]
    nodes = [Node(one.node_name, one.all_total, one.all_free, one.label) for one in line.rooms]
    return Scene(nodes, [_queue(one) for one in line.scheduler.queues], running, waiting, line.counts_all)


def hold(seated: Sequence[Row], rooms: Sequence[NodeRoom]) -> dict[str, list[Hold]]:
    """What each has on which node. YARN tells the node of a master; other containers are where room is in use else."""
    left = {one.node_name: subtract(one.all_total, one.all_free) for one in rooms}
    found: dict[str, list[Hold]] = {row.job_id: [] for row in seated}
    others: list[tuple[str, Amounts]] = []
    for row in seated:
        master, parts = held_by_master(row), max(0, row.containers)
        if row.node_name:
            found[row.job_id].append(Hold(row.node_name, master))
            left[row.node_name] = subtract(left.get(row.node_name, {}), master)
            parts = max(0, parts - 1)
            others += [(row.job_id, part) for part in split(subtract(row.held, master), parts)]
        else:
            others += [(row.job_id, part) for part in split(row.held, parts)]
    for job_id, part in sorted(others, key=lambda one: -_types_of(one[1])) if left else ():
        node = _where(part, left)
        left[node] = subtract(left[node], part)
        found[job_id].append(Hold(node, part))
    return found


def held_by_master(row: Row) -> Amounts:
    """What the master of one has; where YARN does not tell, an equal part of all that its containers have."""
    return row.master or split(row.held, max(1, row.containers))[0]


def _where(part: Amounts, left: Mapping[str, Amounts]) -> str:
    """The node on which a container is: one where so much of each type is in use, and there the most memory."""

    def fits(node: str) -> tuple[bool, int]:
        has = left[node]
        return all(has.get(name, 0) >= count for name, count in part.items()), has.get(MEMORY, 0)

    return max(left, key=fits)


def _types_of(amounts: Amounts) -> int:
    return sum(count > 0 for count in amounts.values())


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
        share=queue.share,
        most=_limit(queue.most),
        masters_most=_limit(queue.masters_most),
        user_masters_most=_limit(queue.user_masters_most),
        user_most={one.name: one.most for one in queue.users if one.most.get(MEMORY)},
    )


def _limit(most: Amounts) -> Amounts:
    """A limit; one of no memory is none that YARN has told."""
    return most if most.get(MEMORY) else {}
