"""Containers that start while it is being decided which node does what."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hadoop.client.yarn import Launch
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Producer
from jobs.application.attempts import STARTED
from jobs.application.calls import Gone, NotYet, Request
from jobs.application.coordinator import Attempt, Container, End, Knowledge, Seat, Then
from jobs.application.exits import Exit
from jobs.application.journal import Record
from jobs.division import speed_history, start_history
from jobs.errors import JobError
from jobs.images.rows import find_flaw
from jobs.itemwork.coordinator import ItemCoordinator
from jobs.itemwork.messages import Item
from jobs.itemwork.undealt import ASKING_EACH_SECOND, Undealt
from locality.types import Block, Part
from tests.jobs.dealing import Paper, pictures_of, rows
from tests.jobs.decisions import WEIGHTS
from tests.jobs.stored import SETTINGS, SPEC, Written

ALPHA, BETA = "alpha", "beta"
SETTLED = replace(SETTINGS, policy="maxflow", fallback=None)


class Disk(Written):
    """A NameNode that keeps what is written."""

    def write(self, name: str, content: bytes, mode: int = 0) -> None:
        super().write(name, content)

    def make_folder(self, name: str, mode: int = 0) -> None:
        super().make_folder(name)

    def rename(self, name: str, target: str, overwrite: bool = False) -> None:
        self[target] = self.pop(name)

    def entries(self, name: str) -> Sequence[Any]:
        """None but the newest, which stays."""
        return ()


class Cluster(Knowledge):
    """Three nodes that all take work."""

    def nodes(self) -> list[str]:
        return list(WEIGHTS)

    def racks(self) -> dict[str, str]:
        return {}


class Images:
    """Forty images, listed once the test says so; or what listing them comes to."""

    def __init__(self) -> None:
        self.may_list = threading.Event()
        self.fault: Exception | None = None

    def blocks(self, input_path: str) -> Sequence[Block]:
        assert self.may_list.wait(60)
        if self.fault:
            raise self.fault
        return [Block(f"{input_path}/{number}", 1, 100, tuple(WEIGHTS)) for number in range(40)]

    def of(self, part: Part) -> Sequence[Item]:
        return pictures_of(part)


class Looking(ItemCoordinator):
    """A kind of job whose workers need nothing."""

    unit = "images"

    def launches(self) -> Callable[[Seat], Launch]:
        return lambda _: Launch(["true"], {}, {}, 256, 1)

    def find_flaw(self, schema: pa.Schema) -> str:
        return find_flaw(schema)


@pytest.fixture
def cluster(client: InfoClient) -> Cluster:
    """The real service knows the nodes' weights; gamma can do nothing."""
    client.put_producer(Producer("weight", cmd="", time_max=3600, kind=Kind.PROGRAM))
    for node, weight in {**WEIGHTS, "gamma": 0.0}.items():
        client.put_value("weight", node, weight)
    disk: Any = Disk()
    return Cluster(disk, client)


class Scene:
    """One attempt at a job, whose time is told."""

    def __init__(self, cluster: Cluster, before: Scene | None = None) -> None:
        self.now = 0.0
        self.images = Images()
        self.paper = Paper()
        self.number: int = before.number + 1 if before else 1
        self.earlier: list[Record] = [*before.earlier, *before.paper.records] if before else []
        disk, service = cluster.filesystem, cluster.client
        attempt = Attempt(self.number, SPEC, disk, service, self.paper, "", self.earlier, 0.0, lambda: self.now)
        self.work = Looking(attempt, SETTLED, self.images)
        self.cluster = cluster

    def start(self, node: str, number: int = 1) -> Container:
        container = Container(Seat("worker", 0, node), f"{node}-{number}", f"{node}:8042")
        self.work.on_start(container)
        return container

    def ask(self, node: str, call: str = "/take", number: int = 1, **more: Any) -> Any:
        body = {"node_name": node, "container_id": f"{node}-{number}", "holding": [], **more}
        return self.work.hear(call, Request("", json.dumps(body).encode()))

    def decide(self) -> None:
        """Let the images be listed, and wait until they are dealt."""
        self.images.may_list.set()
        end = time.monotonic() + 60
        while not self.work.progress().is_planned:
            assert time.monotonic() < end
            self.work.tick()


@pytest.fixture
def scene(cluster: Cluster) -> Iterator[Scene]:
    made = Scene(cluster)
    yield made
    made.images.may_list.set()


def test_containers_are_asked_for_before_the_items_are_known_and_get_leases_once_they_are(scene: Scene) -> None:
    (role,) = scene.work.roles(scene.cluster)
    assert role.nodes == [ALPHA, BETA], "which can do something"
    scene.start(ALPHA)
    assert scene.ask(ALPHA, "/heartbeat") == {"holding": []}
    assert scene.ask(ALPHA) == {"wait": 0.1}
    with pytest.raises(NotYet, match="try again"):
        scene.ask(ALPHA, "/commit")
    scene.work.tick()
    progress = scene.work.progress()
    assert (progress.is_done, progress.is_planned, progress.share, progress.of) == (False, False, 0.0, 0)

    scene.decide()

    lease = scene.ask(ALPHA)["lease"]
    assert lease["groups"]
    names = [item[0] for group in lease["groups"] for item in group["items"]]
    query = f"node_name={ALPHA}&container_id={ALPHA}-1&lease={lease['lease']}&seconds=1&bytes_read=1"
    assert scene.work.hear("/commit", Request(query, rows(ALPHA, names)))
    assert scene.work.progress().done == len(names)
    with pytest.raises(Gone):
        scene.ask(BETA)
    scene.start(BETA)
    assert "lease" in scene.ask(BETA)


@pytest.mark.parametrize(
    ("nodes", "left"), [([BETA], {ALPHA: 30.0, "gamma": 5.0}), ([ALPHA, BETA], {ALPHA: 20.0, "gamma": 5.0})]
)
def test_what_has_passed_of_loading_when_the_plan_is_made_does_not_count(
    scene: Scene, nodes: Sequence[str], left: Mapping[str, float]
) -> None:
    name, client = SETTLED.program.name, scene.cluster.client
    speed_history.prepare(client, name, SETTLED.program.batch)
    speed_history.record(client, name, SETTLED.program.batch, {ALPHA: 1.0, BETA: 2.0})
    start_history.prepare(client, name)
    start_history.record(client, name, {ALPHA: 30.0, BETA: 50.0, "gamma": 5.0})
    scene.work.roles(scene.cluster)
    scene.now = 50.0
    for node in nodes:
        scene.start(node)
    scene.now = 60.0
    scene.ask(BETA)

    scene.decide()

    assert scene.work._decision.start_seconds == left, "whether beta is ready, and since when alpha loads"


def test_who_asked_meanwhile_is_not_silent_and_who_did_not_has_not_begun(scene: Scene) -> None:
    scene.work.roles(scene.cluster)
    waiting, loading = scene.start(ALPHA), scene.start(BETA)
    scene.now = 7.0
    scene.ask(ALPHA)
    assert scene.work.last_heard(waiting.seat) == 7.0

    scene.now = 300.0
    scene.ask(ALPHA)
    scene.decide()

    assert scene.work.last_heard(waiting.seat) == 300.0
    assert scene.work.last_heard(loading.seat) < 0.0


def test_one_that_has_ended_meanwhile_gets_nothing_and_the_one_after_it_does(scene: Scene) -> None:
    scene.work.roles(scene.cluster)
    first = scene.start(ALPHA)
    scene.ask(ALPHA)
    assert scene.work.on_end(first, End(Exit.CRASHED, 1)) is Then.AGAIN
    second = scene.start(ALPHA, 2)
    assert scene.work.last_heard(second.seat) < 0.0

    scene.decide()

    assert scene.work.last_heard(second.seat) < 0.0, "it has not begun yet"
    with pytest.raises(Gone):
        scene.ask(ALPHA)
    assert "lease" in scene.ask(ALPHA, number=2)


@pytest.mark.parametrize("fault", [JobError("there are no images"), HadoopError("HDFS is away")])
def test_what_stands_against_a_decision_ends_the_attempt(scene: Scene, fault: Exception) -> None:
    scene.work.roles(scene.cluster)
    scene.start(ALPHA)
    scene.images.fault = fault

    with pytest.raises(type(fault), match=str(fault)):
        scene.decide()


def test_the_next_attempt_goes_on_with_what_was_decided_at_once(scene: Scene) -> None:
    scene.work.roles(scene.cluster)
    scene.decide()

    again = Scene(scene.cluster, before=scene)
    (role,) = again.work.roles(scene.cluster)

    assert role.nodes == [ALPHA, BETA]
    again.start(ALPHA)
    assert "lease" in again.ask(ALPHA)


def test_an_attempt_that_was_lost_before_that_leaves_the_next_one_its_nodes(scene: Scene) -> None:
    """Else the containers that it has left would get other seats."""
    scene.work.roles(scene.cluster)
    scene.paper.append(Record(STARTED, {}))
    for node, weight in ((ALPHA, 0.0), ("gamma", 1.0)):
        scene.cluster.client.put_value("weight", node, weight)

    again = Scene(scene.cluster, before=scene)
    (role,) = again.work.roles(scene.cluster)
    again.start(ALPHA)
    again.decide()

    assert role.nodes == [ALPHA, BETA]
    assert "lease" in again.ask(ALPHA)


def test_an_attempt_that_was_lost_before_any_container_started_leaves_nothing(scene: Scene) -> None:
    scene.work.roles(scene.cluster)
    for node, weight in ((ALPHA, 0.0), ("gamma", 1.0)):
        scene.cluster.client.put_value("weight", node, weight)

    second = Scene(scene.cluster, before=scene)
    (role,) = second.work.roles(scene.cluster)
    second.paper.append(Record(STARTED, {}))
    third = Scene(scene.cluster, before=second)
    (last,) = third.work.roles(scene.cluster)

    assert role.nodes == last.nodes == [BETA, "gamma"]
    for one in (second, third):
        one.images.may_list.set()


def test_where_many_wait_each_asks_more_seldom() -> None:
    undealt = Undealt(lambda: 0.0)
    body = json.dumps({"node_name": "n1", "container_id": "c1", "holding": []}).encode()
    waits = []
    for number in range(2 * ASKING_EACH_SECOND):
        undealt.add_container(f"n{number}", f"c{number}", 1.0)
        waits.append(undealt.hear("/take", Request("", body))["wait"])

    assert (waits[0], waits[ASKING_EACH_SECOND // 2 - 1], waits[-1]) == (0.1, 0.5, 1.0)


def test_a_pool_s_job_is_divided_before_anything_else_happens(scene: Scene) -> None:
    scene.images.may_list.set()

    assert scene.work.divide(scene.cluster) == [ALPHA, BETA]
    assert scene.work.progress().of == 40
