"""What YARN's word on an application means for its task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hadoop.client.yarn import Application
from infosvc.wire.tasks import LONGEST_REASON, Task, TaskNews, TaskState
from jobs.application.exits import Exit, exit_of
from jobs.kinds.task.settings import STOPPED

EXIT_CODE = "Exit code"
"""Where the section of a task's record holds the exit code of its program."""
_STATUS = re.compile(r"exitCode: (-?\d{1,6})")
_REASONS = {
    Exit.MEMORY: "it took more memory than the {memory_mb} MB that it asked for, so YARN ended it",
    Exit.NODE_LOST: "its node was lost",
    Exit.DISK: "a disk of its node failed",
    Exit.PREEMPTED: "YARN gave its place to another queue",
    Exit.OUTSIDE: "it was ended from outside",
    Exit.KILLED: "it was killed on its node",
}


def news_of(task: Task, application: Application, section: Mapping[str, Any], said: str) -> TaskNews:
    """What the service is to hear: `section` and `said` are of the record that the task's runner has left, if any."""
    state = state_of(application, task.stop_asked, said)
    exit_code = section.get(EXIT_CODE) if state.is_final else None
    return TaskNews(
        state,
        _reason(task, application, state, said)[:LONGEST_REASON],
        application.application_id,
        None if application.host in ("", "N/A") else application.host,
        application.attempt or None,
        exit_code if isinstance(exit_code, int) else None,
    )


def is_told(task: Task, news: TaskNews) -> bool:
    """Whether the service knows these news already."""
    return all(value in (None, getattr(task, name)) for name, value in vars(news).items())


def state_of(application: Application, stop_asked: bool, said: str = "") -> TaskState:
    """How far a task is; one that was asked to stop and did, or was killed then, was stopped; others have failed."""
    if not application.has_ended:
        return TaskState.RUNNING if application.state == "RUNNING" else TaskState.QUEUED
    if application.final == "SUCCEEDED":
        return TaskState.SUCCEEDED
    is_stopped = stop_asked and (application.final == "KILLED" or said == STOPPED)
    return TaskState.STOPPED if is_stopped else TaskState.FAILED


def _reason(task: Task, application: Application, state: TaskState, said: str) -> str:
    if state is TaskState.SUCCEEDED or state is TaskState.RUNNING:
        return ""
    if state is TaskState.STOPPED:
        return STOPPED
    if state is TaskState.QUEUED:
        return application.diagnostics.partition("\n")[0]
    if application.final == "KILLED":
        return "somebody killed its application in YARN"
    if said:
        return said
    status = _STATUS.search(application.diagnostics)
    reason = _REASONS.get(exit_of(int(status[1]))) if status else None
    if reason:
        return reason.format(memory_mb=task.spec.memory_mb)
    return application.diagnostics.partition("\n")[0] or "it left no reason; `nodewise task logs` shows its output"
