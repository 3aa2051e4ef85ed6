"""Another order of nodes, tried on what was noted when a task was given its node."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from hadoop.rest.resourcemanager import NodeOrder, NodeRoom
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.fields import answer_of
from infosvc.wire.records import Datum, Outcome, State
from infosvc.wire.tasks import TaskDecision
from jobs.submitter.placing import Seat, decide
from jobs.submitter.replaying import read_order, replay
from nodewise.__main__ import cli
from tests.recipes.pages import block

ROOMS = [NodeRoom("a", 100, 1), NodeRoom("b", 1000, 2), NodeRoom("c", 1000, 2)]
ORDER = NodeOrder("program.net", 0.4, (("c", 0.9), ("b", 0.5), ("a", 0.1)))
POLICY = """
first.score = free higher 0..1
program.score = speed:{program} higher 0..10
program.filter = free >= 0.3
"""


def value(name: str, node: str, said: str, state: State = State.FRESH) -> Datum:
    return Datum(name, node, said, 1.5, 15, state, Outcome.OK)


VALUES = [
    *(value("free", node, said) for node, said in (("a", "1"), ("b", "0.8"), ("c", "0.2"), ("elsewhere", "1"))),
    *(value("speed:net", node, said) for node, said in (("a", "1"), ("b", "5"), ("c", "9"))),
]


@pytest.fixture
def decision() -> TaskDecision:
    """It runs on c, which had room, as b had."""
    return decide(Seat("task_0f1e2d3c4b5a6978", "c", 1, 512, 1), ROOMS, ORDER, 1.0, VALUES)


def test_the_values_of_the_nodes_that_took_work_are_noted(decision: TaskDecision) -> None:
    assert {(one.data_name, one.node_name) for one in decision.values} == {
        (name, node) for name in ("free", "speed:net") for node in "abc"
    }
    assert TaskDecision.from_json(json.loads(json.dumps(answer_of(decision)))) == decision


def test_the_nodes_come_in_the_other_order_with_what_they_had(decision: TaskDecision) -> None:
    found = replay(decision, read_order(POLICY, "first"))

    assert [(one.node_name, one.score, one.noted_score, one.has_room) for one in found.nodes] == [
        ("a", 1.0, 0.1, False),
        ("b", 0.8, 0.5, True),
        ("c", 0.2, 0.9, True),
    ]
    assert found.first == "b", "a had no room"
    assert found.said == "Of the nodes that may run it and had room, first has b first, and it ran on c."


def test_a_node_for_which_a_filter_does_not_hold_goes_last(decision: TaskDecision) -> None:
    found = replay(decision, read_order(POLICY, "program.net"))

    assert [(one.node_name, one.goes_last) for one in found.nodes] == [("b", False), ("a", False), ("c", True)]


def test_values_that_were_stale_count_as_they_do_in_yarn() -> None:
    stale = [value("free", "b", "1", State.STALE), value("free", "c", "0.1"), value("free", "a", "0.2")]
    decision = decide(Seat("task_1", "c", 1, 512, 1), ROOMS, None, 1.0, stale)

    assert replay(decision, read_order("first.score = free higher 0..1", None)).first == "c"
    known = read_order("first.score = free higher 0..1 missing last-known", None)
    assert replay(decision, known).first == "b"


def test_where_nothing_had_room_there_is_no_first() -> None:
    decision = decide(Seat("task_1", "c", 1, 5120, 1, has_ended=True), ROOMS, None, 1.0, VALUES)
    found = replay(decision, read_order(POLICY, None))

    assert (found.first, found.said) == (None, "No node that may run it had room, and it ran on c.")


@pytest.mark.parametrize(
    ("policy", "order", "sentence"),
    [
        ("first.score = load_1m lower 0..9", None, "first goes by load_1m, and no value of that was noted: noted are"),
        (POLICY, "second", "the settings file has no order second: it has first"),
        (POLICY, "program.NET", "the settings file has no order for the program 'NET'"),
        ("first.scor = free higher 0..1", None, "'first.scor' is not known"),
    ],
)
def test_what_cannot_be_tried_is_refused(decision: TaskDecision, policy: str, order: str | None, sentence: str) -> None:
    with pytest.raises((InvalidInput, NotFound), match=sentence):
        replay(decision, read_order(policy, order))


def test_a_record_without_values_is_refused() -> None:
    bare = decide(Seat("task_1", "c", 1, 512, 1), ROOMS, ORDER, 1.0)
    with pytest.raises(NotFound, match="no values were noted with start 1 of task_1: they are where"):
        replay(bare, read_order(POLICY, "first"))


def test_the_recipe_tries_another_policy_on_a_file(
    task_command: Callable[..., str], decision: TaskDecision, tmp_path: Path
) -> None:
    """The file needs no service."""
    explain, line = block("task-replay").partition("#")[0].splitlines()
    assert explain.endswith("explain task_999855bdfa6921b4 --json > decision.json")
    record, policy = tmp_path / "decision.json", tmp_path / "policy"
    record.write_text(json.dumps(answer_of(decision)))
    policy.write_text(POLICY)
    line = line.replace("decision.json", str(record)).replace("another.properties", str(policy))
    assert line.startswith("nodewise task ")
    words = line.split()[2:]

    lines = task_command(*words).splitlines()

    assert lines[0] == "Of the nodes that may run it and had room, program.net has b first, and it ran on c."
    assert lines[2].split() == ["b", "0.5", "0.5", "yes", "yes"]
    assert lines[4].split() == ["c", "0.9,", "last", "0.9", "yes", "yes"]
    said = json.loads(task_command(*words, "--order", "first", "--json"))
    assert (said["first"], said["order"], said["noted_order"]) == ("b", "first", "program.net")


@pytest.mark.parametrize(
    ("record", "more", "sentence"),
    [
        ("nothing.json", [], "nothing.json is neither a task id nor a file"),
        ("policy", [], "policy holds no decision: `nodewise task explain TASK --json` prints one"),
        ("policy", ["--attempt", "1"], "--attempt is for a task id: a file holds one start"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, record: str, more: list[str], sentence: str) -> None:
    (tmp_path / "policy").write_text(POLICY)
    words = ["task", "replay", str(tmp_path / record), "--policy-file", str(tmp_path / "policy"), *more]

    said = CliRunner().invoke(cli, words)

    assert said.exit_code != 0
    assert sentence in " ".join(said.output.split())
