"""What YARN's word on an application means for its task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hadoop.client.yarn import Application
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskState
from jobs.submitter.news import is_told, news_of

TASK = Task("task_0f1e2d3c4b5a6978", "maria", "mnist", TaskSpec(["train"], memory_mb=700), TaskState.QUEUED, 1.0, 1.0)
APPLICATION = Application("application_1_0001", "mnist", "ACCEPTED", "UNDEFINED", 0.0, "", "N/A", 1.0)
MEMORY = (
    "Application application_1_0001 failed 1 times due to AM Container for appattempt_1_0001_000001 exited with  "
    "exitCode: -104\nFailing this attempt.Diagnostics: [pid=7] is running beyond physical memory limits."
)
UNFETCHED = (
    "Application application_1_0001 failed 1 times due to AM Container for appattempt_1_0001_000001 exited with  "
    "exitCode: -1000\nFailing this attempt.Diagnostics: [2026-11-28 17:43:24.882]Failed to download resource { { "
    "hdfs://127.0.2.1:8020/nodewise/env/blobs/part.sqfs, 1795887803301, FILE, null },pending,"
    "[(container_1_0001_01_000001)],51761286522646,DOWNLOADING} org.apache.hadoop.fs.FSError: java.io.IOException: "
    "No space left on device\nFor more detailed output, check the application tracking page"
)

UNHEARD = (
    "Application application_1_0001 failed 1 times (global limit =4; local limit is =1) due to ApplicationMaster for "
    "attempt appattempt_1_0001_000001 timed out. Failing the application."
)
SILENT = (
    "YARN heard nothing of it for so long (yarn.am.liveness-monitor.expiry-interval-ms) that it gave it up: its runner "
    "stood still, or its node was still fetching its files; `nodewise env warm` brings an environment before"
)


def _ended(final: str, diagnostics: str = "") -> Application:
    state = "FINISHED" if final == "SUCCEEDED" else final
    return replace(APPLICATION, state=state, final=final, diagnostics=diagnostics, host="127.0.1.11", attempt=1)


@pytest.mark.parametrize(
    ("application", "stop_asked", "section", "said", "expected"),
    [
        (
            replace(APPLICATION, diagnostics="Queue's AM resource limit exceeded.\nDetails"),
            False,
            {},
            "",
            (TaskState.QUEUED, "Queue's AM resource limit exceeded.", None, None),
        ),
        (
            replace(APPLICATION, diagnostics=UNFETCHED, attempt=2),
            False,
            {},
            "",
            (TaskState.QUEUED, "its node cannot fetch part.sqfs: No space left on device", None, None),
        ),
        (
            replace(APPLICATION, state="RUNNING", host="127.0.1.11", attempt=2),
            False,
            {},
            "",
            (TaskState.STARTING, "", "127.0.1.11", None),
        ),
        (_ended("SUCCEEDED"), False, {"Exit code": 0}, "it is done", (TaskState.SUCCEEDED, "", "127.0.1.11", 0)),
        (_ended("FAILED"), True, {"Exit code": 3}, "exit code 3", (TaskState.FAILED, "exit code 3", "127.0.1.11", 3)),
        (_ended("KILLED"), True, {}, "", (TaskState.STOPPED, "it was stopped", "127.0.1.11", None)),
        (
            _ended("KILLED"),
            False,
            {},
            "",
            (TaskState.FAILED, "somebody killed its application in YARN", "127.0.1.11", None),
        ),
        (
            _ended("FAILED", MEMORY),
            False,
            {},
            "",
            (
                TaskState.FAILED,
                "it took more memory than the 700 MB that it asked for, so YARN ended it",
                "127.0.1.11",
                None,
            ),
        ),
        (
            _ended("FAILED", UNFETCHED),
            False,
            {},
            "",
            (TaskState.FAILED, "its node cannot fetch part.sqfs: No space left on device", "127.0.1.11", None),
        ),
        (
            replace(APPLICATION, diagnostics=UNHEARD.partition(" due to ")[2], attempt=2),
            False,
            {},
            "",
            (TaskState.QUEUED, SILENT, None, None),
        ),
        (_ended("FAILED", UNHEARD), False, {}, "", (TaskState.FAILED, SILENT, "127.0.1.11", None)),
        (_ended("FAILED", UNHEARD), False, {}, "exit code 3", (TaskState.FAILED, "exit code 3", "127.0.1.11", None)),
        (
            _ended("FAILED", "no room\nat all"),
            False,
            {"Exit code": "none"},
            "",
            (TaskState.FAILED, "no room", "127.0.1.11", None),
        ),
    ],
)
def test_what_yarn_says_becomes_state_reason_node_and_exit_code(
    application: Application,
    stop_asked: bool,
    section: dict[str, object],
    said: str,
    expected: tuple[TaskState, str, str | None, int | None],
) -> None:
    news = news_of(replace(TASK, stop_asked=stop_asked), application, section, said, 2.0)
    assert (news.state, news.reason, news.node_name, news.exit_code) == expected
    assert news.application_id == "application_1_0001"


@pytest.mark.parametrize(
    ("known", "now", "expected"),
    [
        ({"state": TaskState.STARTING, "reason": "fetching data"}, 5000.0, (TaskState.STARTING, None)),
        ({"state": TaskState.STARTING}, 15.0, (TaskState.STARTING, None)),
        ({"state": TaskState.STARTING}, 25.0, (TaskState.RUNNING, "")),  # its runner is not heard
        ({"state": TaskState.RUNNING}, 5000.0, (TaskState.RUNNING, "")),
        ({"state": TaskState.RUNNING, "attempt": 1}, 2.0, (TaskState.STARTING, "")),
        ({"state": TaskState.QUEUED, "attempt": None}, 2.0, (TaskState.STARTING, "")),
    ],
)
def test_what_a_runner_says_counts_before_what_yarn_says(
    known: dict[str, Any], now: float, expected: tuple[TaskState, str | None]
) -> None:
    application = replace(APPLICATION, state="RUNNING", host="n1", attempt=2)
    news = news_of(replace(TASK, **{"attempt": 2, **known}), application, {}, "", now)
    assert (news.state, news.reason) == expected


def test_only_what_is_new_is_told() -> None:
    running = replace(TASK, state=TaskState.RUNNING, node_name="n1", attempt=1)
    assert is_told(running, TaskNews(TaskState.RUNNING, "", node_name="n1"))
    assert not is_told(running, TaskNews(TaskState.RUNNING, "", node_name="n2"))
    assert not is_told(running, TaskNews(TaskState.QUEUED))
