"""How the submitter hears of tunnels that wait, and calls the runners of their tasks."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import Any, cast

import pytest

from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound, Unreachable
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskState
from infosvc.wire.tunnel.described import Tunnel
from infosvc.wire.tunnel.tunnel_end import TunnelCalls
from jobs.submitter.tunnels import TunnelCaller
from jobs.submitter.waking import ASK_SECONDS, Waker
from tests.cluster.site import until


class Runners:
    """A cluster on which some applications do not hear."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.deaf: set[str] = set()

    def call_for_tunnels(self, application_id: str) -> None:
        self.called.append(application_id)
        if application_id in self.deaf:
            raise HadoopError("it does not hear")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def waiting_task(client: InfoClient, number: int) -> str:
    """One that runs and has a tunnel which no runner has joined."""
    task = client.submit_task(TaskSpec(["true"]))
    client.put_task_news(
        task.task_id, TaskNews(TaskState.RUNNING, application_id=f"application_1_000{number}", attempt=1)
    )
    TunnelCalls(client).open(task.task_id)
    return task.task_id


def test_the_runners_of_tunnels_that_wait_are_called_until_they_come(client: InfoClient) -> None:
    runners = Runners()
    task_id = waiting_task(client, 1)
    waiting_task(client, 2)
    caller = TunnelCaller(client, runners, print)
    caller.call()
    assert sorted(runners.called) == ["application_1_0001", "application_1_0002"]

    runner = InfoClient(client.url, client.task_token(task_id))
    (tunnel,) = TunnelCalls(runner).waiting(task_id)
    end = TunnelCalls(runner).join(tunnel)
    caller.call()

    assert sorted(runners.called) == ["application_1_0001", "application_1_0002", "application_1_0002"]
    end.close()


def test_one_that_does_not_hear_holds_up_no_other_and_is_spared_longer_and_longer(client: InfoClient) -> None:
    runners, clock, said = Runners(), Clock(), list[str]()
    deaf = waiting_task(client, 1)
    waiting_task(client, 2)
    runners.deaf.add("application_1_0001")
    caller = TunnelCaller(client, runners, said.append, clock)

    def called() -> list[float]:
        """When that one was called, in a while of two minutes."""
        begin, moments = clock.now, []
        for _ in range(120):
            before = runners.called.count("application_1_0001")
            caller.call()
            if runners.called.count("application_1_0001") > before:
                moments.append(clock.now - begin)
            clock.now += 1
        return moments

    assert called() == [0, 5, 15, 35, 75]
    assert runners.called.count("application_1_0002") == 120
    assert said == [f"the tunnel to {deaf} waits: HadoopError: it does not hear"] * 5

    clock.now += 60
    runners.deaf.clear()
    caller.call()
    runners.deaf.add("application_1_0001")
    assert called()[:3] == [0, 5, 15], "a call that was heard makes up for those that were not"


def test_a_task_that_was_forgotten_meanwhile_is_no_trouble(client: InfoClient, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_task(client, 1)
    runners = Runners()

    def gone(_task_id: str) -> Any:
        raise NotFound("no such task", "task_id")

    monkeypatch.setattr(client, "task", gone)
    TunnelCaller(client, runners, print).call()

    assert runners.called == []


class Service:
    """What tunnels wait, told at once; nothing of events."""

    def __init__(self, *waiting: str) -> None:
        self.told = list(waiting)
        self.asked = 0

    def waiting(self, seconds: float) -> list[Tunnel]:
        assert seconds > 0
        self.asked += 1
        return [Tunnel(one, "task_0f1e2d3c4b5a6978") for one in self.told]

    def events(self, types: list[str]) -> Any:
        raise Unreachable(f"no events of {types}")


def waits(waker: Waker, seconds: float) -> float:
    begun = time.monotonic()
    waker.wait(seconds)
    return time.monotonic() - begun


def test_a_tunnel_wakes_the_submitter_once() -> None:
    service = Service("a" * 32)
    with closing(Waker(cast(InfoClient, service), cast(TunnelCalls, service))) as waker:
        assert waits(waker, 100) < 50

        assert waits(waker, 2.5) > 2.4
        service.told.append("b" * 32)
        assert waits(waker, 100) < 50


def test_a_service_that_answers_at_once_is_not_asked_all_the_time() -> None:
    service, begun = Service(), time.monotonic()
    with closing(Waker(cast(InfoClient, service), cast(TunnelCalls, service))) as waker:
        assert waits(waker, 2.5) > 2.4

        asked, seconds = service.asked, time.monotonic() - begun
        assert asked <= seconds / ASK_SECONDS + 1
        until(lambda: service.asked >= 2)


def test_threads_that_hear_of_tunnels_and_events_end_with_their_owner() -> None:
    before, service = set(threading.enumerate()), Service()
    waker = Waker(cast(InfoClient, service), cast(TunnelCalls, service))
    until(lambda: service.asked)

    waker.close()

    until(lambda: not set(threading.enumerate()) - before)


def test_a_tunnel_that_is_opened_wakes_the_submitter_of_a_real_service(client: InfoClient) -> None:
    with closing(Waker(client, TunnelCalls(client))) as waker:
        waker.wait(0.5)

        waiting_task(client, 1)

        assert waits(waker, 100) < 50
