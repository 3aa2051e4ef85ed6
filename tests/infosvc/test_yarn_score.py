"""The plug-in's arithmetic, on the cases that the plug-in itself is held against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.records import Datum, Outcome, State
from infosvc.wire.scoring.yarn_score import parse, parse_program
from tests.recipes.pages import block

ROOT = Path(__file__).resolve().parents[2]

CASES = json.loads((ROOT / "yarn-plugin" / "src" / "test" / "resources" / "scores.json").read_text())


def datum(name: str, node: str, value: float, fresh: bool) -> Datum:
    state = State.FRESH if fresh else State.STALE
    return Datum(name, node, str(value), 1.5, 15.0, state, Outcome.OK)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_nodes_score_as_the_cases_say(case: dict[str, Any]) -> None:
    combine = case.get("combine", "mean")
    (policy,) = parse(f"first.score = {case['score']}\nfirst.filter = {case['filter']}\nfirst.combine = {combine}\n")
    values = {
        name: {node: datum(name, node, *said) for node, said in of_nodes.items()}
        for name, of_nodes in case["values"].items()
    }

    found = {one.node_name: one for one in policy.order(sorted(case["expected"]), values)}

    for node, (score, last) in case["expected"].items():
        assert found[node].score == pytest.approx(score), node
        assert found[node].last == last, node


def test_the_best_comes_first_and_what_goes_last_comes_last() -> None:
    (policy,) = parse("second.score = free higher 0..1\nsecond.filter = load < 8\n# first.score = free lower 0..1")
    free = {node: datum("free", node, value, True) for node, value in {"a": 0.1, "b": 0.9, "c": 0.9, "d": 1.0}.items()}
    load = {node: datum("load", node, value, True) for node, value in {"a": 1, "b": 2, "c": 1, "d": 9}.items()}

    found = policy.order("abcd", {"free": free, "load": load})

    assert policy.name == "second"
    assert [one.node_name for one in found] == ["b", "c", "a", "d"]


@pytest.mark.parametrize(
    "line",
    [
        "first.score = free",
        "first.score = free higher 1..0",
        "first.score = free higher 0..x",
        "first.score = free higher 0..1 weight 0",
        "first.score = free higher 0..1 missing zero",
        "first.filter = free = 1",
        "first.filter = free > nan",
        "first.combine = sum",
    ],
)
def test_what_the_plug_in_refuses_is_refused_with_its_key(line: str) -> None:
    with pytest.raises(InvalidInput, match=line.partition(" ")[0]):
        parse(f"first.score = free higher 0..1\n{line}\n")


def test_a_program_is_judged_by_its_own_keys_and_else_by_those_of_any_program() -> None:
    text = """first.score = free higher 0..1
        program.score = speed:{program} higher 0..1
        program.filter = free > 0.5
        program.net.v2.score = free lower 0..1
        program.room.filter = free > 0.1"""

    assert [one.name for one in parse(text)] == ["first"]
    said = {name: parse_program(text, name) for name in ("any", "net.v2", "room")}
    assert {name: one.data_names for name, one in said.items()} == {
        "any": ["speed:any", "free"],
        "net.v2": ["free"],
        "room": ["speed:room", "free"],
    }
    assert [str(one) for one in said["room"].conditions] == ["free > 0.1"]
    for unknown in ("No", "a/b", ""):
        with pytest.raises(NotFound):
            parse_program(text, unknown)


@pytest.mark.parametrize("key", ["program.Net.score", "program..score", "program.net.scores", "program"])
def test_a_key_that_names_no_program_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match=key):
        parse(f"first.score = free higher 0..1\n{key} = free higher 0..1\n")


def test_the_settings_that_the_readme_shows_are_right() -> None:
    (policy,) = parse(block("plugin-settings"))

    assert policy.terms and policy.conditions
    assert parse_program(block("plugin-settings"), "net").terms[0].data_name == "training_speed:net"
