"""What holds now: of every node, queue, task and job that a condition is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from infosvc.alerts.condition import Comparisons, Condition, Happening, describe_values
from infosvc.state.value import number_of, state_of
from infosvc.state.views import Latest
from infosvc.wire.records import State
from infosvc.wire.tasks import Task, TaskState

KEPT_SECONDS = 86_400.0
"""How long an alert is on for a job that failed; one that failed longer ago is not told any more."""

_MOVING = (TaskState.STARTING, TaskState.RUNNING)
_FAILED = (TaskState.FAILED, TaskState.LOST)


class Finding(NamedTuple):
    """Whether a condition holds for one thing, None if that is not known now; whose task it is, if it is one."""

    holds: bool | None
    said: str = ""
    owner: str = ""


class FailedJob(NamedTuple):
    """A job of the cluster that failed, at a Unix second."""

    job_id: str
    ended_at: float
    said: str


class Findings:
    """Looks at what the service knows. `is_lost` says so of a node, `failed_jobs` brings those that others know of."""

    def __init__(
        self, latest: Latest, is_lost: Callable[[str], bool], failed_jobs: Callable[[], list[FailedJob]]
    ) -> None:
        self._latest, self._is_lost, self._failed_jobs = latest, is_lost, failed_jobs

    def of(self, condition: Condition, since: float) -> Mapping[str, Finding]:
        """By what each is about; what ended before Unix second `since` is left out, and what is left out does not hold.

        Jobs are found as long as they are told of, and the alert is on for them a day.
        """
        if isinstance(condition, Comparisons):
            return self._of_values(condition)
        if condition is Happening.NODE_LOST:
            return self._of_nodes()
        if condition is Happening.QUEUE_STUCK:
            return self._of_queues()
        return self._of_jobs(max(since, self._latest.clock.wall() - KEPT_SECONDS))

    def _of_values(self, condition: Comparisons) -> dict[str, Finding]:
        names = condition.names
        nodes = set.intersection(*({node for node, _ in self._latest.current_values.rows(name)} for name in names))
        found = {}
        for node in nodes:

            def view(name: str, node: str = node) -> float | None:
                return self._number(name, node)

            found[node] = Finding(condition.holds(view), describe_values(names, view))
        return found

    def _number(self, data_name: str, node_name: str) -> float | None:
        """A number that is fresh."""
        value = self._latest.current_values.find(data_name, node_name)
        producer = self._latest.configuration.producers.get(data_name)
        if value is None or producer is None or value.measured is None:
            return None
        age = self._latest.clock.monotonic() - value.measured
        is_fresh = state_of(value.outcome, age, float(producer.ttl or 0.0)) is State.FRESH
        return number_of(value.text) if is_fresh else None

    def _of_nodes(self) -> dict[str, Finding]:
        """A node that is silent and not lost yet, as all are when the service starts, stands as it stood."""
        found = {}
        for node in self._latest.configuration.nodes:
            is_lost = self._is_lost(node)
            is_known = is_lost or self._latest.state(node) == "ready"
            found[node] = Finding(is_lost if is_known else None, "its agent is not heard of")
        return found

    def _of_queues(self) -> dict[str, Finding]:
        """A queue is stuck while tasks are queued in it and none starts or runs."""
        queued, moving = dict[str, int](), set[str]()
        for stored in self._latest.configuration.tasks.values():
            queue = stored.task.spec.queue
            if stored.task.state is TaskState.QUEUED:
                queued[queue] = queued.get(queue, 0) + 1
            elif stored.task.state in _MOVING:
                moving.add(queue)
        said = "{} of its tasks are queued, and none starts or runs"
        return {queue: Finding(queue not in moving, said.format(count)) for queue, count in queued.items()}

    def _of_jobs(self, since: float) -> dict[str, Finding]:
        tasks = (stored.task for stored in self._latest.configuration.tasks.values())
        found = {task.task_id: _of_task(task) for task in tasks if task.state in _FAILED and _ended(task) > since}
        jobs = self._failed_jobs()
        return found | {job.job_id: Finding(True, job.said) for job in jobs if job.ended_at > since}


def _ended(task: Task) -> float:
    return task.ended_at or 0.0


def _of_task(task: Task) -> Finding:
    return Finding(True, f"{task.name} of {task.owner} {task.state}: {task.reason or 'no reason is known'}", task.owner)
