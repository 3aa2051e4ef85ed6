"""One container per planned node: what is asked, and how losing one ends the job with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hadoop.master import Ended, Granted, Heartbeat
from hadoop.yarn import Launch
from jobs.errors import JobError
from jobs.partitioner.api import Listener
from jobs.partitioner.containers import Containers

Make = Callable[..., Containers]
NOTHING = Heartbeat((), (), ())
LAUNCH = Launch(argv=["true"], environment={}, files={}, memory_mb=1, vcores=1)


class ScriptedSession:
    """A ResourceManager that answers as the test says: losing nodes on command needs one that is no real one."""

    def __init__(self, *answers: Heartbeat) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, str]] = []
        self.launched: list[str] = []

    def ask(self, request: int, node_name: str, launch: Launch) -> None:
        self.asked.append((request, node_name))

    def heartbeat(self, progress: float) -> Heartbeat:
        return self.answers.pop(0) if self.answers else NOTHING

    def launch(self, granted: Granted, launch: Launch) -> None:
        self.launched.append(granted.node_name)


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener("127.0.0.1", "secret")
    yield made
    made.close()


@pytest.fixture
def containers(listener: Listener) -> Make:
    def make(session: ScriptedSession, *nodes: str) -> Containers:
        launches = dict.fromkeys(nodes, LAUNCH)
        return Containers(session, launches, 30.0, 120.0, 0.0, listener)  # type: ignore[arg-type]

    return make


def granted(*nodes: str) -> Heartbeat:
    return Heartbeat(tuple(Granted(f"c-{node}", node, f"{node}:8042", None) for node in nodes), (), ())


def ended(node: str, status: int, said: str = "") -> Heartbeat:
    return Heartbeat((), (Ended(f"c-{node}", status, said),), ())


def test_every_node_is_asked_for_once_with_a_number_of_its_own(containers: Make) -> None:
    session = ScriptedSession()

    containers(session, "b", "a")

    assert session.asked == [(1, "a"), (2, "b")]


def test_all_containers_ending_well_is_the_end(containers: Make) -> None:
    session = ScriptedSession(granted("a"), granted("b"), ended("a", 0), ended("b", 0))
    running = containers(session, "a", "b")

    assert [running.step(now, 0.0) for now in range(4)] == [False, False, False, True]
    assert session.launched == ["a", "b"]


def test_a_worker_that_gives_up_ends_the_job_with_what_it_said(containers: Make, listener: Listener) -> None:
    running = containers(ScriptedSession(granted("a"), NOTHING), "a")
    running.step(0.0, 0.0)
    listener.hear("/failed", {"node_name": "a", "reason": "no weights"})

    with pytest.raises(JobError, match="worker on a gave up: no weights"):
        running.step(1.0, 0.0)


def test_a_worker_that_falls_silent_ends_the_job(containers: Make) -> None:
    running = containers(ScriptedSession(granted("a")), "a")

    assert not running.step(0.0, 0.0)
    assert not running.step(119.0, 0.0)
    with pytest.raises(JobError, match="worker on a has said nothing for 121 s"):
        running.step(121.0, 0.0)


def test_a_killed_worker_that_said_nothing_is_told_by_yarn(containers: Make) -> None:
    running = containers(ScriptedSession(granted("a"), ended("a", 137, "Killed by external signal\nmore")), "a")
    running.step(0.0, 0.0)

    with pytest.raises(JobError, match="status 137: Killed by external signal"):
        running.step(1.0, 0.0)


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ([Heartbeat((), (), ("a",))], "a was lost before its container started"),
        ([granted("a"), Heartbeat((), (), ("a",))], "a was lost while it worked"),
    ],
    ids=["before", "during"],
)
def test_a_lost_node_ends_the_job(containers: Make, answers: list[Heartbeat], sentence: str) -> None:
    running = containers(ScriptedSession(*answers), "a")

    with pytest.raises(JobError, match=sentence):
        for now in range(len(answers)):
            running.step(now, 0.0)


def test_the_loss_of_a_node_that_has_no_share_is_none_of_our_business(containers: Make) -> None:
    running = containers(ScriptedSession(Heartbeat((), (), ("z",)), granted("a"), ended("a", 0)), "a")

    assert [running.step(now, 0.0) for now in range(3)] == [False, False, True]


def test_a_node_that_gives_no_container_is_not_waited_for_for_ever(containers: Make) -> None:
    running = containers(ScriptedSession(granted("b")), "a", "b")

    assert not running.step(29.0, 0.0)
    with pytest.raises(JobError, match="no container on a within 30 s"):
        running.step(31.0, 0.0)
