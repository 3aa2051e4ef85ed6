"""The submitter and a real service; a cluster is played that does what no real one does at will."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError, UnknownApplication
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Unreachable
from infosvc.wire.event_stream import EventStream
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskState
from infosvc.wire.tunnel.tunnel_end import TunnelCalls
from jobs.errors import JobError
from jobs.kinds.task.settings import BOUND_SECONDS, MOVED, UNBOUND
from jobs.submitter.moving import Mover
from jobs.submitter.turns import Turns
from jobs.submitter.waking import Waker, is_urgent
from tests.jobs.conftest import TOKEN

SPEC = TaskSpec(("true",))
FIRST, SECOND = "application_1_0001", "application_1_0002"
TAKEN_BACK = (
    "Application application_1_0001 failed 1 times due to AM Container for appattempt_1_0001_000001 exited with  "
    "exitCode: -102\nFailing this attempt.Diagnostics: Container preempted by scheduler"
)


class Played:
    """A cluster that answers as it is told: `fails` are raised when a task of that name is submitted."""

    def __init__(self) -> None:
        self.up = True
        self.fails: dict[str, Exception] = {}
        self.tagged: dict[str, str] = {}
        self.forgotten: set[str] = set()
        self.killed: list[str] = []
        self.cleaned: list[str] = []
        self.taken_back: set[str] = set()
        self.moved: set[str] = set()
        self.bound_to: dict[str, tuple[str, ...]] = {}
        self.waits_for = 0
        self.attempt = 1
        self.may_wait: list[bool] = []
        self.begun: set[str] = set()
        self.starts_before: list[int] = []

    def is_up(self) -> bool:
        return self.up

    def find(self, task_id: str) -> Application | None:
        return self.application(self.tagged[task_id]) if task_id in self.tagged else None

    def application(self, application_id: str) -> Application:
        if application_id in self.forgotten:
            raise UnknownApplication(f"{application_id} is not known")
        if application_id in self.taken_back:
            return Application(
                application_id, "", "FAILED", "FAILED", 0.0, TAKEN_BACK, "n1", 1.0, frozenset(), attempt=1
            )
        if application_id in self.moved:
            return Application(application_id, "", "FINISHED", "FAILED", 0.0, MOVED, "n1", 1.0, attempt=1)
        waits = Application(application_id, "", "ACCEPTED", "UNDEFINED", 0.0, "", "N/A", 1.0)
        if not self.bound_to.get(application_id):
            return waits
        tags = {f"bound:{self.waits_for}"} if self.waits_for else {"starts:1", "bound"}
        bound = replace(waits, tags=frozenset(tags), attempt=self.attempt)
        if application_id not in self.killed:
            return bound
        return replace(bound, state="KILLED", final="KILLED", diagnostics=f"killed with diagnostic message: {UNBOUND}")

    def submit(
        self,
        task: Task,
        archive: Path | None,
        starts_before: int = 0,
        bound_to: Sequence[str] = (),
        may_wait: bool = True,
    ) -> str:
        assert archive is None
        bound_to = ("n2",) if self.waits_for and may_wait else bound_to
        self.may_wait.append(may_wait)
        if fault := self.fails.get(task.name):
            raise fault
        assert self.tagged.get(task.task_id, "") in {"", *self.taken_back, *self.moved, *self.killed}, (
            "handed over twice"
        )
        self.starts_before.append(starts_before)
        self.tagged[task.task_id] = f"application_1_{len(self.starts_before):04}"
        self.bound_to[self.tagged[task.task_id]] = tuple(bound_to)
        return self.tagged[task.task_id]

    def take_away(self, task_id: str) -> None:
        """Nothing was laid out."""

    def ask_to_stop(self, application_id: str) -> None:
        raise NotImplementedError(application_id)

    def kill(self, application_id: str, why: str = "") -> None:
        self.killed.append(application_id)

    def has_begun(self, application: Application) -> bool:
        return application.application_id in self.begun

    def record(self, application_id: str) -> tuple[Mapping[str, Any], str]:
        assert application_id in {*self.taken_back, *self.moved, *self.killed}
        return {}, MOVED if application_id in self.moved else ""

    def clean(self, application_id: str) -> None:
        self.cleaned.append(application_id)

    def note_decision(self, task: Task, application: Application) -> None:
        raise NotImplementedError(task.task_id)


@pytest.fixture
def cluster() -> Played:
    return Played()


def test_what_is_wrong_with_one_task_is_said_once_and_holds_up_no_other(client: InfoClient, cluster: Played) -> None:
    said: list[str] = []
    bad = client.submit_task(TaskSpec(("true",), name="bad"))
    good = client.submit_task(SPEC)
    cluster.fails["bad"] = ZeroDivisionError("by nothing")
    turns = Turns(client, cluster, said.append)

    assert [turns.turn(), turns.turn()] == [2, 2]

    assert client.task(good.task_id).application_id == "application_1_0001"
    assert [line for line in said if bad.task_id in line] == [f"{bad.task_id}: ZeroDivisionError: by nothing"]
    assert client.task(bad.task_id).state is TaskState.QUEUED, "the next version may know better"


@pytest.mark.parametrize("why", [HadoopError("no such queue"), JobError("no NodeManager accepts work")])
def test_what_hadoop_refuses_is_final_only_while_it_answers_and_has_nodes(
    client: InfoClient, cluster: Played, why: HadoopError | JobError
) -> None:
    task = client.submit_task(TaskSpec(("true",), name="refused"))
    cluster.fails["refused"] = why
    turns = Turns(client, cluster, lambda _: None)

    cluster.up = False
    turns.turn()
    assert client.task(task.task_id).state is TaskState.QUEUED
    cluster.up = True
    turns.turn()
    refused = client.task(task.task_id)
    assert (refused.state, refused.reason) == (TaskState.FAILED, str(why))
    never = client.submit_task(TaskSpec(("true",), name="never"))
    cluster.fails["never"] = JobError("the output exists")
    turns.turn()
    assert client.task(never.task_id).reason == "the output exists"


def test_a_task_that_was_taken_is_looked_for_before_it_is_handed_over(client: InfoClient, cluster: Played) -> None:
    task = client.submit_task(SPEC)

    class Killed(BaseException):
        """As a SIGKILL between YARN's answer and the service's."""

    class Deadly(Played):
        def submit(self, task: Task, archive: Path | None, starts_before: int = 0, *_: Any) -> str:
            cluster.submit(task, archive, starts_before)
            raise Killed

    with pytest.raises(Killed):
        Turns(client, Deadly(), lambda _: None).turn()
    assert client.task(task.task_id).taken
    assert client.stop_task(task.task_id).state is TaskState.QUEUED, "YARN has it, so that it cannot end at once"

    turns = Turns(client, cluster, lambda _: None)
    turns.turn()
    assert client.task(task.task_id).application_id == "application_1_0001"
    turns.turn()
    assert cluster.killed == ["application_1_0001"]
    cluster.forgotten.add("application_1_0001")
    turns.turn()
    assert client.task(task.task_id).state is TaskState.LOST


def handed_over(client: InfoClient, cluster: Played, spec: TaskSpec = SPEC) -> tuple[Task, Turns]:
    """A task that the cluster has as application FIRST, and who looks after it."""
    task, turns = client.submit_task(spec), Turns(client, cluster, lambda _: None)
    turns.turn()
    return task, turns


def test_a_task_whose_room_was_taken_back_waits_again_as_one_more_application(
    client: InfoClient, cluster: Played
) -> None:
    task, turns = handed_over(client, cluster)
    client.put_task_news(task.task_id, TaskNews(TaskState.RUNNING, "", FIRST, "n1", 1))
    cluster.taken_back.add(FIRST)
    turns.turn()

    again = client.task(task.task_id)
    assert (again.state, again.application_id, again.attempt) == (TaskState.QUEUED, SECOND, 1)
    assert (cluster.starts_before, cluster.cleaned) == ([0, 1], [FIRST])
    turns.turn()
    assert client.task(task.task_id).application_id == SECOND, "once"
    client.put_task_news(task.task_id, TaskNews(TaskState.QUEUED, application_id=FIRST))  # as if nobody had heard of it
    turns.turn()
    assert client.task(task.task_id).application_id == SECOND
    assert cluster.starts_before == [0, 1], "a submitter that was killed between has handed it over"


def test_one_that_was_to_be_stopped_then_is_stopped(client: InfoClient, cluster: Played) -> None:
    task, turns = handed_over(client, cluster)
    client.stop_task(task.task_id)
    cluster.taken_back.add(FIRST)
    turns.turn()

    ended = client.task(task.task_id)
    assert (ended.state, ended.reason, cluster.starts_before) == (TaskState.STOPPED, "it was stopped", [0])


def test_one_that_was_handed_over_again_and_is_to_be_stopped_is_stopped_there(
    client: InfoClient, cluster: Played
) -> None:
    task, turns = handed_over(client, cluster)
    cluster.taken_back.add(FIRST)
    turns.turn()
    client.put_task_news(task.task_id, TaskNews(TaskState.QUEUED, application_id=FIRST))  # as if nobody had heard of it
    client.stop_task(task.task_id)

    turns.turn()
    assert client.task(task.task_id).state is TaskState.QUEUED
    turns.turn()

    assert cluster.killed == [SECOND]


def test_one_that_cannot_go_on_now_waits_with_the_reason_and_goes_on_later(client: InfoClient, cluster: Played) -> None:
    task, turns = handed_over(client, cluster, TaskSpec(("true",), name="pinned"))
    cluster.taken_back.add(FIRST)
    cluster.fails["pinned"] = JobError("none of the nodes that may run it accepts work")
    turns.turn()
    waits = client.task(task.task_id)
    assert (waits.state, waits.reason) == (TaskState.QUEUED, "none of the nodes that may run it accepts work")
    del cluster.fails["pinned"]

    turns.turn()

    again = client.task(task.task_id)
    assert (again.state, again.reason, again.application_id) == (TaskState.QUEUED, "", SECOND)


class Narrowing(Mover):
    """Knows two faster nodes with room."""

    def __init__(self) -> None:
        self.asked = 0

    def elsewhere(self, task: Task) -> Sequence[str]:
        self.asked += 1
        return "n2", "n3"


@pytest.fixture
def moving(client: InfoClient, cluster: Played) -> tuple[Task, Turns]:
    """A task that has moved: its application has ended, and nothing follows yet."""
    task = client.submit_task(TaskSpec(("true",), program="net", checkpoint="/kept", move=True))
    turns = Turns(client, cluster, lambda _: None, mover=Narrowing())
    turns.turn()
    cluster.moved.add(FIRST)
    return task, turns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by which the submitter waits, in a list of one."""
    now = [1_000.0]
    monkeypatch.setattr("jobs.submitter.turns.time", SimpleNamespace(time=time.time, monotonic=lambda: now[0]))
    return now


def test_a_task_that_moves_goes_on_as_one_more_application_for_the_faster_nodes(
    client: InfoClient, cluster: Played, moving: tuple[Task, Turns]
) -> None:
    task, turns = moving

    turns.turn()
    turns.turn()

    again = client.task(task.task_id)
    assert (again.state, again.application_id) == (TaskState.QUEUED, SECOND)
    assert (cluster.starts_before, cluster.bound_to[SECOND], cluster.cleaned) == ([0, 1], ("n2", "n3"), [FIRST])
    assert not cluster.killed


def test_a_task_that_moves_goes_anywhere_when_the_faster_nodes_have_had_no_room_for_long(
    client: InfoClient, cluster: Played, moving: tuple[Task, Turns], clock: list[float]
) -> None:
    task, turns = moving
    turns.turn()
    turns.turn()
    clock[0] += BOUND_SECONDS + 1
    cluster.begun.add(SECOND)
    turns.turn()
    assert not cluster.killed, "a node gets it ready, or YARN that was restarted begins it again"

    cluster.begun.clear()
    turns.turn()
    assert cluster.killed == [SECOND]
    turns.turn()

    again = client.task(task.task_id)
    assert (again.state, again.application_id) == (TaskState.QUEUED, "application_1_0003")
    assert (cluster.starts_before, cluster.bound_to["application_1_0003"]) == ([0, 1, 1], ())
    assert cluster.cleaned == [FIRST, SECOND]


def test_a_task_that_waits_for_the_soonest_of_its_nodes_may_use_all_once_it_has_waited_for_what_it_gains(
    client: InfoClient, cluster: Played, clock: list[float]
) -> None:
    task = client.submit_task(TaskSpec(("true",)))
    cluster.waits_for = 7
    turns = Turns(client, cluster, lambda _: None)
    for seconds in (0, 0, 6.9):
        clock[0] += seconds
        turns.turn()
    assert not cluster.killed

    clock[0] += 0.2
    turns.turn()
    assert cluster.killed == [FIRST]
    turns.turn()

    again = client.task(task.task_id)
    assert (again.state, again.application_id, again.reason) == (TaskState.QUEUED, SECOND, "")
    assert (cluster.may_wait, cluster.starts_before, cluster.bound_to[SECOND]) == ([True, False], [0, 0], ())


def test_a_task_waits_for_no_nodes_while_others_are_in_the_queue(client: InfoClient, cluster: Played) -> None:
    for _ in range(2):
        client.submit_task(TaskSpec(("true",)))

    Turns(client, cluster, lambda _: None).turn()

    assert cluster.may_wait == [False, False]


def test_after_the_loss_of_its_node_a_task_waits_for_the_soonest_anew_and_keeps_its_starts(
    client: InfoClient, cluster: Played, clock: list[float]
) -> None:
    client.submit_task(TaskSpec(("true",)))
    cluster.waits_for = 7
    turns = Turns(client, cluster, lambda _: None)
    turns.turn()
    turns.turn()
    clock[0] += 1000
    cluster.attempt = 2
    turns.turn()
    assert not cluster.killed, "it begins to wait now"

    clock[0] += 7.1
    turns.turn()
    turns.turn()

    assert (cluster.killed, cluster.may_wait, cluster.starts_before) == ([FIRST], [True, False], [0, 1])


def test_a_task_that_moves_and_is_to_be_stopped_ends(
    client: InfoClient, cluster: Played, moving: tuple[Task, Turns]
) -> None:
    task, turns = moving
    client.stop_task(task.task_id)

    turns.turn()

    ended = client.task(task.task_id)
    assert (ended.state, ended.reason, cluster.starts_before) == (TaskState.STOPPED, "it was stopped", [0])


def test_a_submitter_that_is_killed_once_a_task_that_moves_is_handed_over_hands_it_over_once(
    client: InfoClient, cluster: Played, moving: tuple[Task, Turns]
) -> None:
    task, turns = moving
    cluster.submit(client.task(task.task_id), None, 1, ("n2",))  # and it was killed before it could tell

    turns.turn()

    assert (client.task(task.task_id).application_id, cluster.starts_before) == (SECOND, [0, 1])


def test_a_task_that_was_taken_and_never_reached_yarn_can_be_stopped(client: InfoClient, cluster: Played) -> None:
    task = client.submit_task(TaskSpec(("true",), name="stuck"))
    cluster.fails["stuck"] = ZeroDivisionError()
    turns = Turns(client, cluster, lambda _: None)
    turns.turn()
    client.stop_task(task.task_id)

    turns.turn()

    assert client.task(task.task_id).state is TaskState.STOPPED


def test_a_service_that_is_away_ends_the_turn(cluster: Played) -> None:
    with pytest.raises(Unreachable):
        Turns(InfoClient("http://127.0.0.1:1", retries=0), cluster, lambda _: None).turn()


def test_a_new_task_and_one_that_is_to_be_stopped_wake_the_submitter(client: InfoClient) -> None:
    hears = threading.Event()

    class Hearing(InfoClient):
        """A client that tells when it hears events: those before are not told."""

        def events(self, *asked: Any, **more: Any) -> EventStream:
            found = super().events(*asked, **more)
            hears.set()
            return found

    waking = Hearing(client.url, TOKEN)

    def waits_for(what: Callable[[], object]) -> float:
        """Until a second after it was told to wait, something happens."""
        happening, begun = threading.Timer(1.0, what), time.monotonic()
        happening.start()
        waker.wait(100.0)
        seconds = time.monotonic() - begun
        happening.join()
        return seconds

    with closing(Waker(waking, TunnelCalls(waking))) as waker:
        assert hears.wait(60)
        assert waits_for(lambda: client.submit_task(SPEC)) < 50.0
        (task,) = client.tasks()
        client.put_task_news(task.task_id, TaskNews(TaskState.RUNNING, node_name="n1", attempt=1))
        waker.wait(0.2)
        assert waits_for(lambda: client.stop_task(task.task_id)) < 50.0


@pytest.mark.parametrize(
    ("state", "stop_asked", "expected"),
    [("queued", False, True), ("running", False, False), ("running", True, True), ("stopped", True, False)],
)
def test_only_what_the_submitter_can_do_something_for_is_urgent(state: str, stop_asked: bool, expected: bool) -> None:
    assert is_urgent({"state": state, "stop_asked": stop_asked}) is expected
