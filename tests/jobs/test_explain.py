"""The explanation of a decision: every figure follows from the record, and every node has its reason."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infosvc.wire.fields import answer_of
from jobs.division.decision import Decision
from jobs.division.explanation import explanation, heading, sentences
from jobs.errors import JobError
from locality.policies import POLICIES
from locality.types import Block, Part, Plan
from tests.jobs.decisions import decide


def node(decision: Decision, name: str) -> dict[str, Any]:
    (found,) = answer_of(explanation(decision, name))["nodes"]
    assert found["node_name"] == name
    return dict(found)


def why(decision: Decision, name: str) -> str:
    return " ".join(node(decision, name)["why"])


def test_a_share_is_the_formula_with_its_numbers() -> None:
    said = why(decide(), "gamma")

    assert "its weight was 5 images/second, 12 s old and fresh, confidence 0.80." in said
    assert "40 * 5 / 8 = 25.0 images by the formula, rounded to 25. It gets these 25." in said


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_figures_add_up_whatever_the_policy(name: str) -> None:
    decision = decide(name, weights={"alpha": 7.0, "beta": 0.0, "gamma": 1.0})
    body = json.loads(json.dumps(answer_of(explanation(decision)), allow_nan=False))

    assert sum(found["images"] for found in body["nodes"]) == 40
    assert sum(found["size_bytes"] for found in body["nodes"]) == sum(block.size_bytes for block in decision.blocks)
    for found in body["nodes"]:
        fetched = found["fetched"]
        assert sum(move["images"] for move in fetched) == found["images"] - found["local_images"]
        assert sum(move["size_bytes"] for move in fetched) == found["size_bytes"] - found["local_bytes"]
        assert len(found["why"]) >= 3
    assert (
        sum(move["size_bytes"] for found in body["nodes"] for move in found["fetched"])
        == body["quality"]["bytes_moved"]
    )


def test_what_is_read_by_others_is_told_on_both_sides() -> None:
    decision = decide(
        weights={"alpha": 0.0, "beta": 1.0}, blocks=[Block(f"/{i}", 1, 1000, ("alpha",)) for i in range(3)]
    )

    assert node(decision, "alpha")["given_away"] == [{"to": "beta", "images": 3, "size_bytes": 3000}]
    assert "It fetches 3 images whose holders get no work: held by alpha, where nothing may run." in why(
        decision, "beta"
    )
    assert "nodes that do not hold it read: 3 by beta" in why(decision, "alpha")


@pytest.mark.parametrize(
    ("policy", "weights", "said"),
    [
        ("algorithm1", {"alpha": 1.0, "idle": 0.0}, "a node whose capability is 0 gets no work"),
        ("algorithm1", {"alpha": 1.0, "idle": 0.001}, "its share is too small for a whole image"),
        ("local_only", {"alpha": 1.0, "idle": 1.0}, "local_only gives all images to other nodes; it holds 0"),
    ],
)
def test_a_node_without_work_is_told_why(policy: str, weights: dict[str, float], said: str) -> None:
    decision = decide(policy, weights, [Block(f"/{i}", 1, 1000, ("alpha",)) for i in range(4)])

    assert node(decision, "idle")["images"] == 0
    assert f"It gets none, because {said}" in why(decision, "idle")


def test_a_share_that_is_not_the_formula_s_says_so() -> None:
    told = "It gets 20: local_only does not follow the formula. With up to 5 images it ends within 2 % of the bound."

    assert told in why(decide("local_only"), "alpha")


def test_the_heading_says_how_good_the_plan_is_and_in_what() -> None:
    known = " ".join(heading(explanation(decide(speeds={"alpha": 2.0, "beta": 2.0, "gamma": 4.0}))))
    unknown = " ".join(heading(explanation(decide())))

    assert "Predicted makespan 6.2, lower bound 5.0, ratio 1.25; in seconds" in known
    assert "ratio 1.00; in images per unit of weight" in unknown
    assert (
        "7.17 kB are moved; within 2 % of the bound the fewest are 0 B, ratio \N{INFINITY}. 82.5 % of the images stay"
        in known
    )


def test_why_pictures_are_fetched_is_told_in_words() -> None:
    held = [Block(f"/{i}", 1, 1000, ("alpha",)) for i in range(3)]
    full = decide("even", {"alpha": 1.0, "beta": 1.0}, [*held, Block("/3", 1, 1000, ("alpha",))])
    lost = decide(weights={"beta": 1.0}, blocks=[Block("/0", 1, 1000, ())])
    part = {block.name: (Part(block, 0, 1),) for block in held[:2]}
    avoidable = replace(
        decide(weights={"alpha": 1.0, "beta": 1.0}, blocks=held[:2]),
        plan=Plan({"alpha": (), "beta": part["/0"] + part["/1"]}),
    )

    assert "fetches 2 images whose holders have their shares: held by alpha (2 of its own, its share" in why(
        full, "beta"
    )
    assert "It fetches 1 image that no live node holds." in why(lost, "beta")
    assert "It fetches 2 images that a holder could have read: held by alpha (0 of its share of 1" in why(
        avoidable, "beta"
    )


def test_only_the_largest_moves_are_told_in_the_sentence() -> None:
    nodes = {f"idle{number}": 0.0 for number in range(9)}
    blocks = [Block(f"/{host}", 2, 1000, (host,)) for host in nodes]

    decision = decide(weights={**nodes, "busy": 1.0}, blocks=blocks)

    assert len(node(decision, "busy")["fetched"]) == 9
    assert "and 4 more in --json" in why(decision, "busy")


def test_there_is_a_line_for_every_node_or_for_the_one_asked_for() -> None:
    assert [line.partition(":")[0] for line in sentences(explanation(decide()))] == ["alpha", "beta", "gamma"]
    assert len(sentences(explanation(decide(), "beta"))) == 1
    with pytest.raises(JobError, match="was not planned with delta: its nodes were alpha, beta, gamma"):
        explanation(decide(), "delta")


def test_the_command_explains_a_file_without_a_cluster_and_saves_it(tmp_path: Path) -> None:
    record, copy = tmp_path / "decision.json", tmp_path / "copy.json"
    record.write_bytes(decide().to_bytes())
    words = ["job", "explain", str(record), "--save", str(copy)]
    command = [sys.executable, "-m", "nodewise", "--home", str(tmp_path), *words]

    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/nowhere"}, timeout=240)

    assert done.returncode == 0, done.stderr
    assert "gamma: its weight was 5 images/second" in done.stdout
    assert copy.read_bytes() == record.read_bytes()
