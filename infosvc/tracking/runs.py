"""Runs: how they begin, change and go. A task is a run too, under its own id: its name and its state are the task's."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from infosvc.access.roles import Caller
from infosvc.settings import Settings
from infosvc.state.configuration import Configuration, StoredTask
from infosvc.state.tracked import NAME_TAG, Run, StoredRun
from infosvc.state.transaction import Transaction
from infosvc.tracking import bounds, experiments
from infosvc.wire.errors import Conflict, NotFound
from infosvc.wire.tasks import Task, TaskState

EXPERIMENT = "MLFLOW_EXPERIMENT_NAME"  # MLflow's own variable, by which a task says in which experiment its run stands
RUNNING = "RUNNING"
ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})
STATUSES = frozenset({RUNNING, "SCHEDULED", *ENDED})
_OF_TASK = {
    TaskState.WAITING: "SCHEDULED",
    TaskState.QUEUED: "SCHEDULED",
    TaskState.STARTING: RUNNING,
    TaskState.RUNNING: RUNNING,
    TaskState.SUCCEEDED: "FINISHED",
    TaskState.FAILED: "FAILED",
    TaskState.STOPPED: "KILLED",
    TaskState.LOST: "FAILED",
}
_SAME = 0.001  # seconds: a task that was asked for later than its run began by more is another of the same id


@dataclass(frozen=True)
class NewRun:
    """What is to begin, and when (Unix milliseconds)."""

    experiment_id: str
    name: str
    started: int
    tags: Mapping[str, str]


def begin(transaction: Transaction, caller: Caller, new: NewRun, settings: Settings, now: float) -> Run:
    """Begin a run; NotFound without its experiment, Conflict when its owner has too many."""
    owner = experiments.find(transaction.configuration, caller, new.experiment_id).owner
    run_id = secrets.token_hex(16)
    name = new.name or new.tags.get(NAME_TAG) or f"run-{run_id[:8]}"
    run = Run(run_id, new.experiment_id, owner, RUNNING, now, now, new.started, tags={**new.tags, NAME_TAG: name})
    return bounds.put(transaction, run, settings)


def find(configuration: Configuration, caller: Caller, run_id: str) -> StoredRun:
    """A run as it is now, also the run of a task of which nothing is kept yet; NotFound when the caller sees none."""
    found = current(configuration.runs.get(run_id), configuration.tasks.get(run_id))
    if found is None or not caller.may_track(found.run.owner):
        raise NotFound(f"no run has the id {run_id[:80]!r}", "run_id", remedy="search_runs shows those that there are")
    return found


def current(stored: StoredRun | None, task: StoredTask | None) -> StoredRun | None:
    """A run that is kept as it is now: that of a task, with what the task says, or nothing once the task is gone."""
    if task is not None:
        kept = stored.run if stored is not None and _is_of(stored.run, task.task) else None
        run = _joined(kept or _new_of(task.task), task.task)
        return StoredRun(run, stored.size if kept is not None and stored is not None else bounds.size_of(run))
    return None if stored is None or stored.run.is_task else stored


def select(configuration: Configuration, caller: Caller) -> list[StoredRun]:
    """All runs that the caller may see."""
    seen = (stored for stored in list(configuration.runs.values()) if caller.may_track(stored.run.owner))
    found = (current(stored, configuration.tasks.get(stored.run.run_id)) for stored in seen)
    return [one for one in found if one is not None]


@dataclass(frozen=True)
class Update:
    """What is said of a run; what is left out stays. `ended` is Unix milliseconds."""

    status: str = ""
    ended: int | None = None
    name: str = ""


def update(transaction: Transaction, caller: Caller, run_id: str, said: Update, settings: Settings, now: float) -> Run:
    """Note what is said of a run; that of a task is only noted to be there."""
    run = find(transaction.configuration, caller, run_id).run
    changed = msgspec.structs.replace(run, changed_at=now)
    if not run.is_task:
        status = said.status or run.status
        ended = (said.ended or run.ended or round(now * 1000)) if status in ENDED else None
        name = {NAME_TAG: said.name} if said.name else {}
        changed = msgspec.structs.replace(changed, status=status, ended=ended, tags={**run.tags, **name})
    return keep(transaction, changed, settings, now)


def keep(transaction: Transaction, run: Run, settings: Settings, now: float) -> Run:
    """Keep a run as it is now, at Unix second `now`; the experiment that a task names is made with its run.

    Conflict when there would be too much. Where there is no room for one experiment more, the run stands alone.
    """
    bounds.put(transaction, run, settings)
    if run.is_task and run.experiment_id != experiments.DEFAULT:
        task: StoredTask = transaction.find("tasks", (run.run_id,))
        with suppress(Conflict):  # mostly because it is there
            experiments.create(transaction, run.owner, _experiment_of(task.task), {}, now)
    return run


def stand_in(transaction: Transaction, task_id: str, experiment_id: str, settings: Settings) -> None:
    """Let the run of a task stand in the experiment that its program has set; Conflict when there is no room.

    MLflow's client refuses to go on with a run of another experiment than the one that is set. Once anything is noted
    of the run, or where a variable of the task names its experiment, it stays where it is.
    """
    task: StoredTask | None = transaction.find("tasks", (task_id,))
    kept = transaction.configuration.runs.get(task_id)
    if task is None or EXPERIMENT in task.task.spec.variables:
        return
    found = current(kept, task)
    if found is None or found.run.experiment_id == experiment_id or found.run.changed_at != found.run.created_at:
        return
    bounds.put(transaction, msgspec.structs.replace(found.run, experiment_id=experiment_id), settings)


def delete(transaction: Transaction, caller: Caller, run_id: str) -> None:
    """Forget a run with its points; Conflict for that of a task."""
    if find(transaction.configuration, caller, run_id).run.is_task:
        raise Conflict(
            f"the run {run_id} is a task",
            "run_id",
            remedy=f"remove it with `nodewise task rm {run_id}` once it has ended",
        )
    transaction.remove_run(run_id)


def _is_of(run: Run, task: Task) -> bool:
    return run.is_task and task.created_at <= run.created_at + _SAME


def _experiment_of(task: Task) -> str:
    """The name of the experiment in which a task's run stands."""
    name = task.spec.variables.get(EXPERIMENT, "")
    return name if 0 < len(name) <= experiments.LONGEST_NAME else experiments.DEFAULT_NAME


def _new_of(task: Task) -> Run:
    name = _experiment_of(task)
    experiment_id = experiments.DEFAULT if name == experiments.DEFAULT_NAME else experiments.id_of(task.owner, name)
    return Run(task.task_id, experiment_id, task.owner, RUNNING, task.created_at, task.created_at, 0, is_task=True)


def _joined(run: Run, task: Task) -> Run:
    ended = None if task.ended_at is None else round(task.ended_at * 1000)
    return msgspec.structs.replace(
        run,
        owner=task.owner,
        status=_OF_TASK[task.state],
        started=round((task.started_at or task.created_at) * 1000),
        ended=ended,
        tags={**run.tags, NAME_TAG: task.name},
    )
