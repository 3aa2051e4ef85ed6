"""Why a task runs where it runs: from what YARN and the plug-in say of nodes, to sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from environments.manifest import Manifest, Part
from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest.resourcemanager import NodeOrder, NodeRoom, parse_order
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.fields import answer_of
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskDecision, TaskNews, TaskState
from jobs.application.environments.laid import Laid
from jobs.application.submit import InfoAccess, Order, Submitter
from jobs.kinds.task.request import order as make_order
from jobs.submitter import cluster
from jobs.submitter.cluster import TaskCluster
from jobs.submitter.placing import Seat, Sight, consider, decide
from jobs.submitter.preferring import prefer_soonest
from jobs.submitter.soonest import find_patience, find_soonest
from tests.jobs.conftest import TOKEN
from tests.jobs.played import Hadoop

ROOMS = [NodeRoom("a", 100, 1), NodeRoom("b", 1000, 2), NodeRoom("c", 1000, 2)]
ORDER = NodeOrder("first", 0.4, (("c", 0.9), ("b", 0.5), ("a", 0.1)))


class Kept:
    """What of HDFS a submitter asks for when it notes a decision."""

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = content

    def home(self) -> str:
        return "/user/me"

    def exists(self, path: str) -> bool:
        return path in self.content

    def read(self, path: str) -> bytes:
        return self.content[path]

    def make_folder(self, path: str, mode: int) -> None:
        assert mode == 0o700, path

    def write(self, path: str, content: bytes, mode: int) -> None:
        assert mode == 0o600, path
        self.content[path] = content


def seat(node_name: str, *hosts: str) -> Seat:
    return Seat("task_1", node_name, 1, 512, 1, hosts)


def test_the_nodes_are_shown_by_score_with_what_they_had_left() -> None:
    found = decide(seat("c"), ROOMS, ORDER, 1.0)

    assert [(one.node_name, one.score, one.free_mb, one.has_room) for one in found.nodes] == [
        ("c", 0.9, 1512, True),  # what the task has taken is given back
        ("b", 0.5, 1000, True),
        ("a", 0.1, 100, False),
    ]
    assert found.said == (
        "3 of 3 nodes may run it, of which 2 had room. "
        "The order first, by values that were 0.4 s old, has c first among them."
    )


@pytest.mark.parametrize(
    ("sits", "order", "sentence"),
    [
        (seat("b"), ORDER, "has b at place 2 among them."),
        (seat("b", "b", "a"), ORDER, "2 of 3 nodes may run it, of which 1 had room. The order first, by values that "),
        (seat("b", "b"), ORDER, "has b first among them."),
        (seat("b"), None, "YARN has no order of nodewise here, and took b by its own rules."),
        (seat("b"), NodeOrder("first", None, ()), "The order first had no values, so YARN took b by its own rules."),
        (seat("z"), ORDER, "says nothing of z, which YARN took."),
    ],
)
def test_why_is_said_in_a_sentence(sits: Seat, order: NodeOrder | None, sentence: str) -> None:
    assert sentence in decide(sits, ROOMS, order, 1.0).said


ALIKE = NodeOrder("first", 0.4, (("c", 0.8), ("b", 0.8), ("a", 0.8)))
HAS_B = {"a": 0.0, "b": 0.0, "c": 3.0}
"""Who has an environment, and who needs three seconds for it; there is no room on a."""


@pytest.mark.parametrize(
    ("sits", "order", "ready", "soonest"),
    [
        (seat(""), None, HAS_B, ["b"]),
        (seat(""), ALIKE, HAS_B, ["b"]),
        (seat(""), NodeOrder("first", 0.4, (("c", 0.8), ("b", 0.75))), HAS_B, ["b"]),
        (seat(""), ORDER, HAS_B, ["c"]),  # much better for it
        (seat(""), NodeOrder("first", 0.4, (("c", 0.8),)), HAS_B, ["c"]),  # b is not among the best
        (seat(""), NodeOrder("first", 0.4, (("c", 0.3), ("b", 0.9))), HAS_B, ["b"]),  # last, and yet as good
        (seat(""), NodeOrder("first", 0.4, (("c", 0.0), ("b", 0.0))), HAS_B, ["b"]),
        (seat(""), NodeOrder("first", None, (("c", 0.9),)), HAS_B, ["b"]),  # without values it says nothing
        (seat("", "c", "a"), ALIKE, HAS_B, []),
        (seat(""), ALIKE, {"a": 0.0, "b": 3.0, "c": 3.0}, []),
        (seat(""), ALIKE, {"a": 0.0, "b": 0.4, "c": 0.0}, []),
        (seat(""), None, {"b": 9.0, "c": 9.4, "a": 0.0}, []),
        (seat(""), ALIKE, {}, []),
    ],
)
def test_a_task_prefers_nodes_where_it_is_done_soonest_if_their_being_ready_makes_a_difference(
    sits: Seat, order: NodeOrder | None, ready: dict[str, float], soonest: list[str]
) -> None:
    assert find_soonest(consider(replace(sits, ready_seconds=ready), ROOMS, order), order) == soonest


@pytest.mark.parametrize(
    ("order", "seconds", "patience"),
    [
        (ALIKE, 3.0, 0.0),  # YARN takes about as long to give a node
        (ALIKE, 5.5, 5.5),
        (ALIKE, 40.0, 40.0),
        (NodeOrder("first", 0.4, (("c", 0.8), ("b", 0.4))), 40.0, 10.0),  # b has it, and runs 30 s longer
        (NodeOrder("first", 0.4, (("b", 0.8),)), 40.0, math.inf),  # c is not among the best
        (ORDER, 0.3, 0.0),
    ],
)
def test_a_task_waits_for_the_soonest_nodes_as_long_as_it_gains(
    order: NodeOrder, seconds: float, patience: float
) -> None:
    ready = {"a": 0.0, "b": 0.0, "c": seconds}

    assert find_patience(consider(replace(seat(""), ready_seconds=ready), ROOMS, order), order) == pytest.approx(
        patience
    )


@pytest.mark.parametrize(
    ("nodes", "seconds", "may_wait", "hosts", "tags"),
    [
        ((), 40.0, True, (), ()),
        (("b", "c"), 40.0, True, ("b",), ("bound:40",)),
        (("b", "c"), 400.0, True, ("b",), ("bound:60",)),
        (("b", "c"), 40.0, False, ("b", "c"), ()),
        (("b", "c"), 2.0, True, ("b", "c"), ()),
        (("a", "c"), 40.0, True, ("a", "c"), ()),  # a has no room
    ],
)
def test_a_task_that_may_use_some_nodes_alone_is_for_the_soonest_of_them_at_first(
    nodes: tuple[str, ...], seconds: float, may_wait: bool, hosts: tuple[str, ...], tags: tuple[str, ...]
) -> None:
    asked = make_order(TaskSpec(["train"], nodes=nodes), "task_1", None, ["a", "b", "c"])
    ready = {"a": 0.0, "b": 0.0, "c": seconds}
    able = consider(replace(seat("", *nodes), ready_seconds=ready), ROOMS, ALIKE)

    found = prefer_soonest(asked, able, ALIKE, ready, may_wait)

    bound = ("b",) if tags or not nodes else ()
    assert (tuple(found.master.hosts), tuple(found.tags)) == (hosts, ("task:task_1", *tags))
    assert (tuple(found.settings["prefers"]), found.settings["ready_seconds"]) == (bound, ready)


@pytest.mark.parametrize(
    ("node", "prefers", "sentence"),
    [
        (
            "b",
            ("b",),
            " for b first, where the task would be done soonest. b had its environment already.",
        ),
        ("c", ("a", "b"), " soonest, and got none of these in time. c gets its environment in about 3 s."),
        ("c", (), "has c first among them. c gets its environment in about 3 s."),
    ],
)
def test_who_had_the_environment_is_told(node: str, prefers: tuple[str, ...], sentence: str) -> None:
    found = decide(replace(seat(node), prefers=prefers, ready_seconds=HAS_B), ROOMS, ORDER, 1.0)

    assert found.said.endswith(sentence)
    assert {one.node_name: one.ready_seconds for one in found.nodes} == HAS_B
    assert tuple(sorted(one.node_name for one in found.nodes if one.preferred)) == prefers


def test_a_program_goes_by_its_own_order_or_by_the_usual_one() -> None:
    own = NodeOrder("program.net", 0.4, (("b", 0.7),))
    sight = Sight(ROOMS, {"first": ORDER, "program.net": own})

    assert [sight.order_of(program) for program in ("net", "other", None)] == [own, ORDER, ORDER]
    assert [sight.own_order_of(program) for program in ("net", "other", None)] == [own, None, None]
    assert [one.score for one in consider(seat(""), sight.rooms, own)] == [None, 0.7, None]


def test_an_order_is_read_as_the_plug_in_tells_it() -> None:
    bean: dict[str, Any] = {
        "name": "Hadoop:service=ResourceManager,name=NodewiseOrder-program.resnet",
        "First": ["127.0.1.11:8041 0.900", "127.0.1.12:8041 0.100 last"],
        "SnapshotAgeMillis": 400,
        "StockOrder": False,
    }

    order = NodeOrder("program.resnet", 0.4, (("127.0.1.11", 0.9), ("127.0.1.12", 0.1)))
    assert parse_order(bean) == order
    assert parse_order({**bean, "StockOrder": True, "First": []}) == NodeOrder("program.resnet", None, ())
    assert parse_order({**bean, "SnapshotAgeMillis": -1}).age_seconds is None


@pytest.fixture
def conf_dir(tmp_path: Path) -> Path:
    """The settings of a Hadoop that does not answer."""
    setting = "<name>yarn.resourcemanager.webapp.address</name><value>127.0.0.1:1</value>"
    (tmp_path / "yarn-site.xml").write_text(f"<configuration><property>{setting}</property></configuration>")
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    return tmp_path


def test_a_task_goes_anywhere_while_yarn_tells_nothing_of_its_nodes(
    conf_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitter = cast("Submitter", SimpleNamespace(conf_dir=conf_dir, user="me"))
    made = TaskCluster(submitter, InfoAccess(), InfoClient("http://127.0.0.1:1", retries=0))
    monkeypatch.setattr(cluster, "find_all_ready", lambda *_: {})
    laid = Laid(manifest=Manifest("torch", "1", "3.11", [Part("/opt/env", "a" * 64, 1)]))
    asked = Order("task", "train", {})

    with pytest.raises(HadoopError):
        made.look()
    assert made._preferring(asked, laid, ["a", "b"], None, may_wait=True) is asked


def test_the_nodes_that_a_task_may_use_are_those_that_were_found_when_it_was_submitted(
    conf_dir: Path, client: InfoClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = TaskSpec(["train"], gpus=1, gpu_model="T4")
    lacking = {"a": "it has no GPU"}
    asked = make_order(spec, "task_1", None, ["a", "b", "c"], lacking=lacking)
    kept = Kept({"/user/me/.nodewise/application_1_0001/job.json": json.dumps({"settings": asked.settings}).encode()})
    folder = "/user/me/.nodewise/{}".format
    submitter = SimpleNamespace(conf_dir=conf_dir, user="me", filesystem=kept, staging=folder)
    made = TaskCluster(cast("Submitter", submitter), InfoAccess(), client)
    monkeypatch.setattr(made, "look", lambda: Sight(ROOMS, {}))
    task = Task("task_1", "me", "train", spec, TaskState.STARTING, 1.0, 1.0)
    application = Application("application_1_0001", "train", "RUNNING", "UNDEFINED", 0.0, "", "b", 1.0, attempt=1)

    made.note_decision(task, application)  # by now, no node tells of its cards

    found = TaskDecision.from_json(json.loads(kept.content["/user/me/.nodewise/tasks/task_1/decision.1"]))
    assert {one.node_name: one.allowed for one in found.nodes} == {"a": False, "b": True, "c": True}


@pytest.fixture
def placed(users_client: InfoClient, hadoop: Hadoop) -> tuple[str, TaskDecision]:
    """A task whose submitter has noted why it runs where it runs."""
    task_id = users_client.submit_task(TaskSpec(["train"])).task_id
    InfoClient(users_client.url, TOKEN).put_task_news(task_id, TaskNews(TaskState.RUNNING, node_name="c", attempt=1))
    decision = decide(Seat(task_id, "c", 1, 512, 1), ROOMS, ORDER, 1_700_000_000.0)
    hadoop.stored[f"/user/me/.nodewise/tasks/{task_id}/decision.1"] = json.dumps(answer_of(decision)).encode()
    return task_id, decision


def test_the_service_tells_what_the_submitter_has_noted(
    users_client: InfoClient, placed: tuple[str, TaskDecision]
) -> None:
    task_id, decision = placed

    assert users_client.task_decision(task_id) == users_client.task_decision(task_id, 1) == decision
    with pytest.raises(NotFound, match=f"why start 2 of {task_id} has its node is not known"):
        users_client.task_decision(task_id, 2)


def test_what_is_no_decision_is_not_shown(
    users_client: InfoClient, hadoop: Hadoop, placed: tuple[str, TaskDecision]
) -> None:
    for content in (b"", b"[]", b'{"task_id": 1}', b"\xff"):
        hadoop.stored[f"/user/me/.nodewise/tasks/{placed[0]}/decision.1"] = content
        with pytest.raises(NotFound):
            users_client.task_decision(placed[0])


def test_the_command_explains(task_command: Callable[..., str], placed: tuple[str, TaskDecision]) -> None:
    task_id, decision = placed

    lines = task_command("explain", task_id).splitlines()

    assert decision.said in lines[0] and lines[0].startswith("c, seen at ")
    assert [line.split() for line in lines[2:]] == [
        ["c", "0.9", "1512", "3", "yes", "yes"],
        ["b", "0.5", "1000", "2", "yes", "yes"],
        ["a", "0.1", "100", "1", "yes", "no"],
    ]
    assert TaskDecision.from_json(json.loads(task_command("explain", task_id, "--json"))) == decision


def test_the_command_tells_who_had_the_environment(
    task_command: Callable[..., str], hadoop: Hadoop, placed: tuple[str, TaskDecision]
) -> None:
    sits = replace(seat("b"), task_id=placed[0], prefers=("b",), ready_seconds=HAS_B)
    content = json.dumps(answer_of(decide(sits, ROOMS, ORDER, 1_700_000_000.0))).encode()
    hadoop.stored[f"/user/me/.nodewise/tasks/{placed[0]}/decision.1"] = content

    lines = task_command("explain", placed[0]).splitlines()

    assert [line.split()[-3:] for line in lines[2:]] == [["3", "s", "no"], ["0", "s", "yes"], ["0", "s", "no"]]
