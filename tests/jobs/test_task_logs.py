"""Following what a task prints, past a service that is away for a moment, and not past one that stays away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound, NotReady
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import EXAMPLE_ID, Task, TaskLogPiece, TaskState
from jobs.application.following import PATIENCE_SECONDS
from jobs.commands.asking import task_printed, task_waiting
from jobs.commands.asking.task_printed import read

RUNS = Task(EXAMPLE_ID, "maria", "mnist", TaskSpec(["train"]), TaskState.RUNNING, 1.0, 1.0, attempt=1)
AWAY = NotReady("Hadoop does not answer")


class Service:
    """Of each look at the task's log what it answers or raises; the last one is of a task that has ended."""

    def __init__(self, *looks: str | Exception) -> None:
        self._looks = list(looks)
        self._printed = ""

    def task(self, _task_id: str) -> Task:
        return RUNS if len(self._looks) > 1 else replace(RUNS, state=TaskState.SUCCEEDED)

    def task_log(self, _task_id: str, stream: str, attempt: int, offset: int) -> TaskLogPiece:
        if stream == "stdout":
            look = self._looks.pop(0)
            if isinstance(look, Exception):
                raise look
            self._printed += look
        text = self._printed[offset:] if stream == "stdout" else ""
        return TaskLogPiece(EXAMPLE_ID, RUNS.state, stream, attempt, offset, offset + len(text), False, text)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """What the time is, at which nothing waits: a pause is over at once."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    for module in (task_printed, task_waiting):
        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: now[0]))
    yield now


def followed(service: Service) -> Iterator[str]:
    return (printed.text for printed in read(cast(InfoClient, service), EXAMPLE_ID, None, follows=True))


def test_a_service_that_is_away_for_a_moment_ends_nothing_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    service = Service("one\n", AWAY, AWAY, "two\n", AWAY, "three\n")

    assert list(followed(service)) == ["one\n", "two\n", "three\n"]
    assert capsys.readouterr().err == "still waiting: Hadoop does not answer\n" * 2, "once each time"


def test_the_last_words_of_a_task_that_has_ended_are_read_although_the_first_look_at_them_fails() -> None:
    class Ended(Service):
        def task(self, _task_id: str) -> Task:
            return replace(RUNS, state=TaskState.SUCCEEDED) if len(self._looks) < 3 else RUNS

    assert list(followed(Ended("one\n", AWAY, "last\n"))) == ["one\n", "last\n"]


def test_a_service_that_stays_away_is_given_up(clock: list[float]) -> None:
    found = followed(Service("one\n", *[AWAY] * 1000, "two\n"))
    assert next(found) == "one\n"

    with pytest.raises(NotReady, match="Hadoop does not answer"):
        next(found)
    assert PATIENCE_SECONDS < clock[0] < PATIENCE_SECONDS + 5


def test_a_service_that_answers_now_and_then_is_not_away(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    class Busy(Service):
        def task_log(self, task_id: str, stream: str, attempt: int, offset: int) -> TaskLogPiece:
            if stream == "stderr" and 0 < len(self._looks) < 999:
                raise AWAY
            return super().task_log(task_id, stream, attempt, offset)

    assert len(list(followed(Busy(*["line\n"] * 1000)))) == 1000
    assert clock[0] > 2 * PATIENCE_SECONDS
    assert capsys.readouterr().err.count("still waiting") == 1


def test_what_is_wrong_at_the_first_look_or_for_good_is_told_at_once(clock: list[float]) -> None:
    with pytest.raises(NotReady):
        list(followed(Service(AWAY, "one\n")))
    with pytest.raises(NotFound):
        list(followed(Service("one\n", NotFound("it is forgotten", "task_id"), "two\n")))
    assert clock[0] < 5
