"""Of two services one stands still, and its submitter does not: YARN gets each task once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from hadoop.client.yarn import Application
from infosvc.state import claim
from infosvc.state.database import parse_url
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotReady
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskState
from jobs.kinds.task.request import task_tag
from jobs.submitter.confirming import MOST_TRIES, SURE_SECONDS, confirm
from jobs.submitter.doubles import Doubles
from tests.infosvc.conftest import MariaDB, mariadb, serving
from tests.ports import free_port

__all__ = ["mariadb"]
FIRST, SECOND, OTHER = "application_1_0001", "application_1_0002", "application_1_0003"
ALIVE = Application(FIRST, "", "ACCEPTED", "UNDEFINED", 0.0, "", "N/A", 1.0)


@pytest.fixture
def told(client: InfoClient) -> Task:
    """A task that the service knows as application FIRST."""
    task = client.submit_task(TaskSpec(("true",)))
    return client.put_task_news(task.task_id, TaskNews(TaskState.QUEUED, application_id=FIRST))


def test_only_the_service_that_has_the_database_confirms(mariadb: MariaDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "CLAIM_SECONDS", 60.0)  # a service that renews late is sure of its database all the same
    database = mariadb.new_database()
    name = parse_url(database).database
    with ExitStack() as held:
        client = held.enter_context(serving(database, shared_with=f"http://127.0.0.1:{free_port()}")).client
        task = client.submit_task(TaskSpec(("true",)))
        taken = client.put_task_news(task.task_id, TaskNews(TaskState.QUEUED))
        confirm(client, taken)
        assert client.task(task.task_id) == taken, "it changes nothing"
        mariadb.sql(f"USE {name}", "UPDATE t_Meta SET value = value + 1 WHERE name = 'epoch'", "COMMIT")
        with pytest.raises(InfoError):
            confirm(client, taken)


def test_an_answer_that_took_long_is_asked_for_again(client: InfoClient, told: Task) -> None:
    def clock(*seconds: float) -> Iterator[float]:
        now = 0.0
        for one in seconds:
            yield now
            now += one
            yield now

    slow_once, slow = clock(SURE_SECONDS, 0.1), clock(*[SURE_SECONDS] * MOST_TRIES)
    confirm(client, told, lambda: next(slow_once))
    with pytest.raises(StopIteration):
        next(slow_once)
    with pytest.raises(NotReady, match=f"so {told.task_id} waits"):
        confirm(client, told, lambda: next(slow))


class Applications:
    """YARN with these applications, which is asked to end some."""

    def __init__(self, *alive: Application) -> None:
        self.now = list(alive)
        self.ended: list[str] = []

    def alive(self) -> list[Application]:
        return self.now

    def kill(self, application_id: str, why: str = "") -> None:
        assert why == "its task has another application"
        self.ended.append(application_id)

    def clean(self, application_id: str) -> None:
        assert application_id in self.ended


def _of(task_id: str, application_id: str) -> Application:
    return replace(ALIVE, application_id=application_id, tags=frozenset({task_tag(task_id)}))


def test_of_two_applications_of_a_task_the_one_that_the_service_does_not_know_is_ended(
    client: InfoClient, told: Task
) -> None:
    said: list[str] = []
    job, stranger = replace(ALIVE, application_id=OTHER), "task_00000000000000ff"
    elsewhere = [_of(stranger, "application_1_0004"), _of(stranger, "application_1_0005")]
    yarn = Applications(_of(told.task_id, FIRST), _of(told.task_id, SECOND), job, *elsewhere)
    doubles = Doubles(client, yarn, said.append)
    doubles.end()
    doubles.end()  # not so soon again
    assert yarn.ended == [SECOND]
    assert said == [f"{SECOND} is ended, since {told.task_id} is {FIRST}"]


def test_one_whose_task_goes_on_as_another_one_is_left_alone(client: InfoClient, told: Task) -> None:
    yarn = Applications(_of(told.task_id, SECOND), _of(told.task_id, OTHER))  # FIRST has ended, as when a task moves
    Doubles(client, yarn, lambda _: None).end()
    assert yarn.ended == []
