"""Which task moves, when and where, at a real service; YARN's nodes are played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest.resourcemanager import NodeRoom
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput
from infosvc.wire.records import Kind, Producer, Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import ConsideredNode, Task, TaskNews, TaskState
from jobs.kinds.task.settings import MOVED
from jobs.submitter.moving import LEAST_SECONDS, PAUSE_SECONDS, Mover
from jobs.submitter.news import has_moved, state_of
from jobs.submitter.placing import Sight

SPEC = TaskSpec(("train",), program="net", checkpoint="/checkpoints/net", move=True)
SPEEDS = {"slow": 0.25, "usual": 0.4, "fast": 1.0}


class Nodes:
    """All nodes have room, and each runner hears, unless a test says otherwise."""

    def __init__(self) -> None:
        self.full: set[str] = set()
        self.barred: set[str] = set()
        self.asked: list[str] = []
        self.deaf = False
        self.fault: Exception | None = None
        self.unknown: set[str] = set()
        self.scores: dict[str, float] = {}

    def look(self) -> Sight:
        if self.fault:
            raise self.fault
        return Sight([NodeRoom(node, 0 if node in self.full else 4096, 2) for node in SPEEDS], {})

    def nodes_for(self, task: Task, sight: Sight) -> Sequence[ConsideredNode]:
        if task.task_id in self.unknown:
            raise ZeroDivisionError
        return [
            ConsideredNode(name, name not in self.barred, one.free_mb > 0, one.free_mb, 2, self.scores.get(name))
            for one in sight.rooms
            if not task.spec.nodes or one.node_name in task.spec.nodes
            for name in [one.node_name]
        ]

    def ask_to_move(self, application_id: str) -> None:
        if self.deaf:
            raise UnicodeError("its address is none")
        self.asked.append(application_id)


class Scene:
    """A service that knows how fast nodes run `net`, and who moves its tasks by a clock of ours."""

    def __init__(self, client: InfoClient) -> None:
        self.client = client
        self.nodes = Nodes()
        self.said: list[str] = []
        self.now = 1_000.0
        submitter = InfoClient(client.url, client.create_token("submitter", Role.SUBMITTER)[1])
        self.mover = Mover(submitter, self.nodes, self.said.append, lambda: self.now)
        client.put_producer(Producer("training_speed:net", "", 60.0, Kind.PROGRAM, ttl=3600))
        for node, speed in SPEEDS.items():
            client.put_node(node, "127.0.0.1:9")
            client.put_value("training_speed:net", node, speed)

    def running(self, node: str, spec: TaskSpec = SPEC, number: int = 1) -> Task:
        """A task whose program runs there."""
        task = self.client.submit_task(spec)
        self.client.put_task_news(task.task_id, TaskNews(TaskState.QUEUED))
        self.client.put_task_news(
            task.task_id, TaskNews(TaskState.RUNNING, "", f"application_1_{number:04}", node, attempt=1)
        )
        return self.client.task(task.task_id)

    def look_after(self, seconds: float) -> list[str]:
        """The applications that were asked to move so far."""
        self.now += seconds
        self.mover.look()
        return self.nodes.asked

    def look_when_due(self, start: int = 1) -> list[str]:
        """The same once what runs now, at that start, has run for long enough."""
        self.look_after(PAUSE_SECONDS)
        return self.look_after(LEAST_SECONDS * 2 ** (start - 1))

    def go_on(self, task: Task, node: str) -> None:
        """The task has its second start there, in one more application."""
        news = TaskNews(TaskState.QUEUED, "", "application_1_0009")
        self.client.put_task_news(task.task_id, news)
        self.client.put_task_news(task.task_id, replace(news, state=TaskState.RUNNING, node_name=node, attempt=2))


@pytest.fixture
def scene(client: InfoClient) -> Scene:
    return Scene(client)


def test_a_task_on_a_slow_node_moves_once_it_has_run_for_long_enough(scene: Scene) -> None:
    task = scene.running("slow")
    scene.look_after(PAUSE_SECONDS)
    assert scene.look_after(LEAST_SECONDS - 1) == []

    assert scene.look_after(PAUSE_SECONDS) == ["application_1_0001"]

    assert scene.said == [f"{task.task_id} leaves slow: fast runs net 4.0 times as fast"]
    assert scene.look_after(PAUSE_SECONDS) == ["application_1_0001"], "once"
    assert scene.mover.elsewhere(task) == ["fast", "usual"]


def test_its_next_start_may_move_after_twice_as_long(scene: Scene) -> None:
    task = scene.running("slow")
    scene.look_when_due()
    scene.go_on(task, "usual")
    assert scene.look_when_due() == ["application_1_0001"]

    assert scene.look_after(LEAST_SECONDS) == ["application_1_0001", "application_1_0009"]


def test_of_two_the_one_moves_that_gains_more_and_then_the_other(scene: Scene) -> None:
    scene.running("usual", number=1)
    slow = scene.running("slow", number=2)
    assert scene.look_when_due() == ["application_1_0002"]
    assert scene.look_after(LEAST_SECONDS - 1) == ["application_1_0002"], "it has not moved yet"

    scene.go_on(slow, "fast")

    assert scene.look_after(PAUSE_SECONDS) == ["application_1_0002", "application_1_0001"]


def test_what_is_wrong_with_one_task_is_said_once_and_does_not_hold_up_another(scene: Scene) -> None:
    broken = {scene.running("slow", number=number).task_id for number in (1, 3)}
    scene.running("usual", number=2)
    scene.nodes.unknown = broken

    assert scene.look_when_due() == ["application_1_0002"]

    scene.nodes.full = {"fast"}
    for _ in range(5):
        scene.look_after(LEAST_SECONDS)
    assert sorted(said for said in scene.said if "ZeroDivisionError" in said) == [
        f"where {task_id} would be faster is not known: ZeroDivisionError: " for task_id in sorted(broken)
    ]


@pytest.mark.parametrize(
    ("node", "differs"),
    [("fast", {}), ("slow", {"move": False}), ("slow", {"nodes": ("slow",)}), ("unknown", {"program": "new"})],
)
def test_it_stays_where_nothing_is_gained_or_known_or_it_did_not_ask(
    scene: Scene, node: str, differs: dict[str, Any]
) -> None:
    scene.running(node, replace(SPEC, **differs))

    assert scene.look_when_due() == []


def test_it_stays_while_no_faster_node_has_room_or_another_task_waits(scene: Scene) -> None:
    scene.running("slow")
    scene.nodes.full = {"fast"}
    scene.nodes.barred = {"usual"}
    assert scene.look_when_due() == []

    scene.nodes.full = set()
    waits = scene.client.submit_task(TaskSpec(("other",)))
    assert scene.look_after(PAUSE_SECONDS) == []

    scene.client.stop_task(waits.task_id)
    assert scene.look_after(PAUSE_SECONDS) == ["application_1_0001"]


def test_it_leaves_a_faster_node_alone_whose_score_tells_that_others_are_at_work_there(scene: Scene) -> None:
    task = scene.running("slow")
    scene.nodes.scores = {"slow": 0.0, "usual": 0.37, "fast": 0.04}
    assert scene.look_when_due() == []

    scene.nodes.scores = {"slow": 0.0, "usual": 0.37}
    assert scene.look_after(PAUSE_SECONDS) == [], "YARN shows the best scores alone"

    scene.nodes.scores = {"slow": 0.0, "usual": 0.37, "fast": 0.5}
    assert scene.look_after(PAUSE_SECONDS) == ["application_1_0001"]
    assert scene.said == [f"{task.task_id} leaves slow: fast runs net 2.0 times as fast"]
    assert scene.mover.elsewhere(task) == ["fast"]


def test_a_runner_that_does_not_hear_is_asked_again(scene: Scene) -> None:
    task = scene.running("slow")
    scene.nodes.deaf = True
    scene.look_when_due()
    assert scene.said == [f"{task.task_id} cannot move: UnicodeError: its address is none"]

    scene.nodes.deaf = False
    assert scene.look_after(PAUSE_SECONDS) == [], "not at once, nor is it said again and again"
    assert scene.look_after(LEAST_SECONDS) == ["application_1_0001"]


def test_it_goes_anywhere_if_the_faster_nodes_have_lost_their_room(scene: Scene) -> None:
    task = scene.running("slow")
    scene.nodes.full = {"fast", "usual"}

    assert not scene.mover.elsewhere(task)


def test_it_stays_or_goes_anywhere_while_what_nodes_have_left_is_not_known(scene: Scene) -> None:
    task = scene.running("slow")
    scene.nodes.fault = HadoopError("YARN is away")

    assert scene.look_when_due() == []
    assert not scene.mover.elsewhere(task)


def test_a_node_that_is_said_to_do_nothing_or_something_else_is_left_alone(scene: Scene) -> None:
    for said in ("0", "-1", "nonsense"):
        scene.client.put_value("training_speed:net", "slow", said)
        scene.running("slow")

        assert (scene.look_when_due(), scene.said) == ([], [])


def test_an_application_has_moved_only_if_its_task_may() -> None:
    ended = Application("application_1_0001", "", "FINISHED", "FAILED", 0.0, MOVED, "slow", 1.0)
    task = Task("task_0f1e2d3c4b5a6978", "maria", "a", SPEC, TaskState.RUNNING, 1.0, 1.0)

    assert has_moved(task, ended, MOVED)
    assert has_moved(task, ended, ""), "its record is lost, and YARN still knows"
    assert not has_moved(task, ended, "exit code 1")
    assert not has_moved(replace(task, spec=replace(SPEC, move=False)), ended, MOVED)
    assert state_of(ended, True, MOVED) is TaskState.STOPPED, "its owner wanted that meanwhile"


@pytest.mark.parametrize("lacks", ["program", "checkpoint"])
def test_a_task_that_could_not_go_on_is_refused(client: InfoClient, lacks: str) -> None:
    with pytest.raises(InvalidInput, match="a task can move only with a program and a checkpoint") as refused:
        client.submit_task(replace(SPEC, program=None) if lacks == "program" else replace(SPEC, checkpoint=None))

    assert refused.value.field == "move"
