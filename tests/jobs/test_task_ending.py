"""How the runner of a task ends whose program is to end: its box, its log and its journal are played."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from boxes.box import Ended
from infosvc.wire.client import InfoClient
from jobs.application.coordinator import Attempt
from jobs.errors import JobError
from jobs.kinds.task import runner
from jobs.kinds.task.runner import Task
from jobs.kinds.task.settings import MOVE, MOVED, STOP, STOPPED
from tests.jobs.stored import SPEC

NOTHING: Any = None
WANTED_BACK = "YARN wants the room back"


class PlayedBox:
    """Holds a program that ends when it is to."""

    shows_machine = True

    def __init__(self, ends_itself: bool) -> None:
        self.begun, self._ending, self.may_end = threading.Event(), threading.Event(), threading.Event()
        if ends_itself:
            self._ending.set()
            self.may_end.set()

    def start(self, *_: Any) -> None:
        self.begun.set()

    def wait(self, _limit: float | None) -> Ended:
        assert self._ending.wait(60) and self.may_end.wait(60)
        return Ended(0)

    def end(self, _grace: float) -> Ended:
        self._ending.set()
        return Ended(0)


class PlayedLog:
    """Takes all, and keeps nothing."""

    steps_per_second = None

    def __init__(self, *_: Any) -> None: ...

    def write(self, stream: str, content: bytes) -> None: ...

    def note_use(self, notes: bytes) -> None: ...

    def hurry(self) -> None: ...

    def close(self, seconds: float) -> None: ...


class PlayedLooks:
    """Looks at nothing; `at_end` is done right after the program has ended."""

    at_end: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, *_: Any) -> None: ...

    def close(self) -> None:
        self.at_end()


class Journal:
    """Forgets."""

    def append(self, record: Any) -> None: ...


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[bool], tuple[Task, PlayedBox]]:
    """A runner whose program ends by itself or not, and the box of the program."""

    def begin(ends_itself: bool) -> tuple[Task, PlayedBox]:
        box = PlayedBox(ends_itself)
        monkeypatch.setattr("jobs.kinds.task.runner.boxes.create", lambda _: box)
        settings = {"task_id": "task_0f1e2d3c4b5a6978", "argv": ["true"]}
        spec = type(SPEC)(**{**SPEC.__dict__, "settings": settings})
        nobody = InfoClient("http://127.0.0.1:1")
        journal = cast(Any, Journal())
        return Task(Attempt(1, spec, NOTHING, nobody, journal, "", [], 0.0, lambda: 0.0)), box

    monkeypatch.setenv("NM_HOST", "n1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "on_stop", lambda _: None)
    monkeypatch.setattr(runner, "Printed", PlayedLog)
    monkeypatch.setattr(runner, "Using", PlayedLooks)
    monkeypatch.setattr(PlayedLooks, "at_end", staticmethod(lambda: None))
    return begin


@pytest.mark.parametrize(
    ("asked", "reason"),
    [((MOVE,), MOVED), ((MOVE, STOP), STOPPED), ((STOP, MOVE), STOPPED), ((WANTED_BACK, MOVE), MOVED)],
    ids=["moves", "stopped after all", "stopped", "moves from a room that YARN wants back"],
)
def test_why_a_program_was_to_end_is_told(
    make: Callable[[bool], tuple[Task, PlayedBox]], asked: Sequence[str], reason: str
) -> None:
    task, box = make(False)
    failures: list[str] = []

    def run() -> None:
        try:
            task.run()
        except JobError as error:
            failures.append(error.message)

    running = threading.Thread(target=run)
    running.start()
    assert box.begun.wait(60)
    for call in asked:
        if call == WANTED_BACK:
            task.give_back()
        else:
            task.hear(call, NOTHING)
    box.may_end.set()
    running.join(60)

    assert failures == [reason]


def test_one_that_is_to_end_when_its_time_is_over_ends_as_it_was_asked_to(
    make: Callable[[bool], tuple[Task, PlayedBox]], monkeypatch: pytest.MonkeyPatch
) -> None:
    task, box = make(True)

    def wait(_limit: float | None) -> None:
        task.hear(MOVE, NOTHING)  # just before

    monkeypatch.setattr(box, "wait", wait)

    with pytest.raises(JobError, match=MOVED):
        task.run()


def test_who_asks_once_the_program_has_ended_comes_too_late(
    make: Callable[[bool], tuple[Task, PlayedBox]], monkeypatch: pytest.MonkeyPatch
) -> None:
    task, _ = make(True)
    monkeypatch.setattr(PlayedLooks, "at_end", staticmethod(lambda: task.hear(MOVE, NOTHING)))

    assert task.run().message == "the program ended with exit code 0"
