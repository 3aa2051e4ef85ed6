"""What YARN's word on an application means for its task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hadoop.client.yarn import Application
from hadoop.rest.told import tell_end
from infosvc.wire.tasks import LONGEST_REASON, Task, TaskNews, TaskState
from jobs.application.exits import Exit, exit_of
from jobs.kinds.task.request import start_of
from jobs.kinds.task.settings import MOVED, STOPPED, UNBOUND

EXIT_CODE = "Exit code"
"""Where the section of a task's record holds the exit code of its program."""
WORD_SECONDS = 20.0
"""How long a runner may take to be heard; one that cannot reach the service never is."""
_STATUS = re.compile(r"exited with\s+exitCode: (-?\d{1,6})")
_UNHEARD = re.compile(r"ApplicationMaster for attempt \S+ timed out")
_SILENT = (
    "YARN heard nothing of it for so long (yarn.am.liveness-monitor.expiry-interval-ms) that it gave it up: its runner "
    "stood still, or its node was still fetching its files; `nodewise env warm` brings an environment before"
)
_REASONS = {
    Exit.MEMORY: "it took more memory than the {memory_mb} MB that it asked for, so YARN ended it",
    Exit.NODE_LOST: "its node was lost",
    Exit.DISK: "a disk of its node failed",
    Exit.PREEMPTED: "YARN gave its place to another queue",
    Exit.OUTSIDE: "it was ended from outside",
    Exit.KILLED: "it was killed on its node",
}


def news_of(task: Task, application: Application, section: Mapping[str, Any], said: str, now: float) -> TaskNews:
    """What the service is to hear: `section` and `said` are of the record that the task's runner has left, if any.

    `now` is Unix seconds by the clock of the service, beside which a submitter runs.
    """
    state = _heard_state(task, application, now) or state_of(application, task.stop_asked, said)
    exit_code = section.get(EXIT_CODE) if state.is_final else None
    is_same = task.state is state and task.attempt == start_of(application)
    is_heard = is_same and state is TaskState.STARTING  # then the reason is its runner's
    return TaskNews(
        state,
        None if is_heard else _reason(task, application, state, said)[:LONGEST_REASON],
        application.application_id,
        None if application.host in ("", "N/A") else application.host,
        start_of(application) or None,
        exit_code if isinstance(exit_code, int) else None,
    )


def _heard_state(task: Task, application: Application, now: float) -> TaskState | None:
    """What the runner of this start says, or is about to say; None where it is not heard."""
    if application.has_ended or application.state != "RUNNING":
        return None
    if task.attempt != start_of(application) or task.state not in (TaskState.STARTING, TaskState.RUNNING):
        return TaskState.STARTING
    is_silent = task.state is TaskState.STARTING and not task.reason  # a runner that starts says what it does
    return None if is_silent and now - task.changed_at > WORD_SECONDS else task.state


def is_told(task: Task, news: TaskNews) -> bool:
    """Whether the service knows these news already."""
    return all(value in (None, getattr(task, name)) for name, value in vars(news).items())


def state_of(application: Application, stop_asked: bool, said: str = "") -> TaskState:
    """How far a task is; one that was asked to stop and did, or was killed then, was stopped; others have failed."""
    if not application.has_ended:
        return TaskState.RUNNING if application.state == "RUNNING" else TaskState.QUEUED
    if application.final == "SUCCEEDED":
        return TaskState.SUCCEEDED
    last_words = _last_words(application, said)
    had_to_end = application.final == "KILLED" or last_words in (STOPPED, MOVED) or is_taken_back(application)
    return TaskState.STOPPED if stop_asked and had_to_end else TaskState.FAILED


def is_taken_back(application: Application) -> bool:
    """Whether an application has ended because another queue has taken its room back.

    YARN itself starts a task again then only if that has attempts left, and more than one at all.
    """
    return application.final == "FAILED" and _exit_of(application) is Exit.PREEMPTED


def has_moved(task: Task, application: Application, said: str) -> bool:
    """Whether an application has ended so that its task goes on elsewhere, as `said` by its runner.

    A program could write that itself: it would only be started again.
    """
    return task.spec.move and application.final == "FAILED" and _last_words(application, said) == MOVED


def is_unbound(application: Application) -> bool:
    """Whether an application has ended as it waited in vain for the nodes to which it was bound."""
    return application.final == "KILLED" and UNBOUND in application.diagnostics


def _last_words(application: Application, said: str) -> str:
    """What the runner has said in its record, or, if it could not leave one, to YARN."""
    return said or _yarns_words(application)


def _yarns_words(application: Application) -> str:
    first = application.diagnostics.partition("\n")[0]
    return _SILENT if _UNHEARD.search(first) else tell_end(application.diagnostics)


def _exit_of(application: Application) -> Exit | None:
    """How the last container of a failed application ended, None if YARN does not say."""
    status = _STATUS.search(application.diagnostics)
    return exit_of(int(status[1])) if status else None


def _reason(task: Task, application: Application, state: TaskState, said: str) -> str:
    if state in (TaskState.SUCCEEDED, TaskState.STARTING, TaskState.RUNNING):
        return ""
    if state is TaskState.STOPPED:
        return STOPPED
    if state is TaskState.QUEUED:
        return _yarns_words(application)
    if application.final == "KILLED":
        return "somebody killed its application in YARN"
    if said:
        return said
    found = _exit_of(application)
    if found and (reason := _REASONS.get(found)):
        return reason.format(memory_mb=task.spec.memory_mb)
    return _last_words(application, said) or "it left no reason; `nodewise task logs` shows its output"
