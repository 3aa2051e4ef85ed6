"""What the runner of a task tells the service while the task runs, and when a program counts as idle."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import boxes
from boxes.box import Box, Limits, Program
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, Unreachable
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskProgress, TaskState
from jobs.kinds.task import telling, using
from jobs.kinds.task.telling import Telling
from jobs.kinds.task.using import Using
from tests.cluster.site import until

BEGUN = TaskProgress(1, running=False, reason="getting its files")


def telling_threads() -> set[threading.Thread]:
    """Those that have something to tell, or may have."""
    return {one for one in threading.enumerate() if one.name == "telling"}


def test_the_service_hears_each_change_and_nothing_once_the_task_has_ended(client: InfoClient) -> None:
    task = client.submit_task(TaskSpec(["train"]))
    runner = InfoClient(client.url, client.task_token(task.task_id))
    before, told = telling_threads(), list[TaskProgress]()

    def tell(now: TaskProgress) -> None:
        told.append(now)
        runner.put_task_progress(task.task_id, now)

    found = Telling(tell, BEGUN)
    until(lambda: client.task(task.task_id).state is TaskState.STARTING)
    found.change(running=True, reason="")
    until(lambda: client.task(task.task_id).state is TaskState.RUNNING)
    client.put_task_news(task.task_id, TaskNews(TaskState.STOPPED))
    found.change(idle_since=1.0)
    until(lambda: len(told) == 3)
    until(lambda: telling_threads() <= before)  # the task's token has ended with it


def test_a_service_that_was_away_hears_the_last_of_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "AGAIN_SECONDS", 0.05)
    asked, heard = list[TaskProgress](), list[TaskProgress]()
    is_back = threading.Event()

    def tell(now: TaskProgress) -> None:
        asked.append(now)
        if not is_back.is_set():
            raise Unreachable("nobody answers")
        heard.append(now)

    found = Telling(tell, BEGUN)
    until(lambda: asked)
    found.change(reason="fetching data")
    found.change(running=True, reason="")
    until(lambda: asked[-1] == TaskProgress(1, running=True))  # what is on its way as the service comes back is heard
    is_back.set()
    until(lambda: heard and heard[-1] == TaskProgress(1, running=True))
    found.close()
    assert TaskProgress(1, running=False, reason="fetching data") not in heard


def test_a_service_that_refuses_is_left_alone_and_the_log_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    before, asked = telling_threads(), list[TaskProgress]()

    def tell(now: TaskProgress) -> None:
        asked.append(now)
        raise Forbidden("the token is another's")

    found = Telling(tell, BEGUN)
    until(lambda: telling_threads() <= before)
    found.change(running=True)
    time.sleep(0.1)
    assert asked == [BEGUN]
    assert capfd.readouterr().out == (
        "the information service does not hear how far the task is: the token is another's\n"
    )


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    """A program that waits until it is woken, and then works as long as there is a file."""
    os.mkfifo(tmp_path / "wake")
    script = "while read word < wake; do while [ -e work ]; do :; done; done"
    made = boxes.create("process")
    made.start(Program(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, tmp_path, Limits(64)), lambda *_: None)
    yield made
    made.end(0)


def test_a_program_that_uses_none_of_its_cores_is_marked_until_it_does_again(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(using, "EVERY_SECONDS", 0.2)
    monkeypatch.setattr(using, "IDLE_SECONDS", 1.0)
    begun, marks = time.time(), list[float | None]()
    looking = Using(box, lambda _: None, marks.append)
    until(lambda: len(marks) == 1)
    (tmp_path / "work").touch()
    (tmp_path / "wake").write_text("up\n")
    until(lambda: len(marks) == 2)
    (tmp_path / "work").unlink()
    until(lambda: len(marks) == 3)
    looking.close()

    first, busy, again = marks
    assert first is not None and begun <= first < time.time()
    assert busy is None
    assert again is not None and again > first
