"""What holds now: of every node, queue, task and job that a condition is about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from infosvc.alerts.condition import Comparisons, Condition, Happening, describe_values
from infosvc.alerts.outside import ClusterFacts
from infosvc.state.value import Value, number_of, state_of
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


class Findings:
    """Looks at what the service knows. `is_lost` says so of a node, `facts` brings what others know."""

    def __init__(self, latest: Latest, is_lost: Callable[[str], bool], facts: Callable[[], ClusterFacts]) -> None:
        self._latest, self._is_lost, self._facts = latest, is_lost, facts
        self._columns: dict[str, dict[str, float | None]] = {}

    def begin(self) -> None:
        """Look anew: until the next time, values are those of now."""
        self._columns = {}

    def of(self, condition: Condition, since: float, known: Collection[str]) -> Mapping[str, Finding]:
        """By what each is about: all that hold, and those of `known`; what is left out does not hold.

        What ended before Unix second `since` is left out, too. Jobs are found as long as they are told of, and the
        alert is on for them a day.
        """
        if isinstance(condition, Comparisons):
            return self._of_values(condition, known)
        if condition is Happening.NODE_LOST:
            return self._of_nodes()
        if condition is Happening.QUEUE_STUCK:
            return self._of_queues()
        return self._of_jobs(max(since, self._latest.clock.wall() - KEPT_SECONDS))

    def _of_values(self, condition: Comparisons, known: Collection[str]) -> dict[str, Finding]:
        names = condition.names
        columns = {name: self._column(name) for name in names}
        found = {}
        for node in set.intersection(*map(set, columns.values())):

            def view(name: str, node: str = node) -> float | None:
                return columns[name][node]

            holds = condition.holds(view)
            if holds or node in known:
                found[node] = Finding(holds, describe_values(names, view))
        return found

    def _column(self, data_name: str) -> dict[str, float | None]:
        """The numbers of a name by node; None for one that is not fresh, or no number."""
        if data_name not in self._columns:
            producer = self._latest.configuration.producers.get(data_name)
            ttl, now = float(producer.ttl or 0.0) if producer else 0.0, self._latest.clock.monotonic()
            rows = self._latest.current_values.rows(data_name)
            self._columns[data_name] = {node: _number(value, ttl, now) for node, value in rows}
        return self._columns[data_name]

    def _of_nodes(self) -> dict[str, Finding]:
        """A node that is silent and not lost yet, as all are when the service starts, stands as it stood."""
        found = {}
        for node in self._latest.configuration.nodes:
            is_lost = self._is_lost(node)
            is_known = is_lost or self._latest.state(node) == "ready"
            found[node] = Finding(is_lost if is_known else None, "its agent is not heard of")
        return found

    def _of_queues(self) -> dict[str, Finding]:
        """A queue is stuck while tasks are queued in it, and neither they nor other applications start or run."""
        queued, moving = dict[str, int](), set[str]()
        for stored in self._latest.configuration.tasks.values():
            queue = stored.task.spec.queue
            if stored.task.state is TaskState.QUEUED:
                queued[queue] = queued.get(queue, 0) + 1
            elif stored.task.state in _MOVING:
                moving.add(queue)
        busy, said = self._facts().busy_queues, "{} of its tasks are queued, and nothing starts or runs"
        return {
            queue: Finding(queue not in moving and _is_idle(queue, busy), said.format(count))
            for queue, count in queued.items()
        }

    def _of_jobs(self, since: float) -> dict[str, Finding]:
        tasks = (stored.task for stored in self._latest.configuration.tasks.values())
        found = {task.task_id: _of_task(task) for task in tasks if task.state in _FAILED and _ended(task) > since}
        jobs = (job for job in self._facts().failed_jobs if job.ended_at > since)
        return found | {job.job_id: Finding(True, _storable(job.said), job.owner) for job in jobs}


def _number(value: Value, ttl: float, now: float) -> float | None:
    age = None if value.measured is None else now - value.measured
    return number_of(value.text) if state_of(value.outcome, age, ttl) is State.FRESH else None


def _storable(text: str) -> str:
    """What programs have said may hold half characters, which no database takes: no alert could be stored any more."""
    return text.encode(errors="replace").decode()


def _is_idle(queue: str, busy: Collection[str] | None) -> bool | None:
    """Whether YARN runs nothing in a queue, which tasks may name without the queues above it; None if not known.

    >>> _is_idle("default", {"root.default"}), _is_idle("default", {"root.small"}), _is_idle("default", None)
    (False, True, None)
    """
    if busy is None:
        return None
    return not any(one == queue or one.endswith(f".{queue}") for one in busy)


def _ended(task: Task) -> float:
    return task.ended_at or 0.0


def _of_task(task: Task) -> Finding:
    return Finding(True, f"{task.name} of {task.owner} {task.state}: {task.reason or 'no reason is known'}", task.owner)
