"""Replaying a decision offline: the same question has the same answer, and other questions are compared fairly."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.division.decision import Decision
from jobs.division.replay import attempts, comparison, values_of, yardstick
from jobs.errors import JobError
from locality.policies import POLICIES
from locality.types import Part, Plan
from tests.in_process import nodewise
from tests.jobs.decisions import NODES, WEIGHTS, decide

SPEEDS = {"alpha": 2.0, "beta": 2.0, "gamma": 4.0}


def plans(decision: Decision, *policies: str, **capabilities: dict[str, float]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = comparison(decision, attempts(decision, policies, capabilities))["plans"]
    return found


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_recorded_policy_and_capability_make_the_recorded_plan_again(name: str) -> None:
    stored = Decision.from_bytes(decide(name).to_bytes(), "decision.json")

    recorded, again = attempts(stored, [name], {"weight": values_of(stored, "weight")})

    assert again.plan == recorded.plan
    assert again.quality == recorded.quality


def test_all_plans_are_timed_at_the_known_speeds() -> None:
    decision = decide(speeds=SPEEDS)

    recorded, even = plans(decision, "even", weight=WEIGHTS)

    # 40 images: 5, 10, 25 by weight, and 14, 13, 13
    assert (recorded["makespan"], even["makespan"]) == (25 / 4, 14 / 2)
    assert recorded["lower_bound"] == even["lower_bound"] == 40 / 8
    assert even["makespan_over_bound"] == pytest.approx(1.4)


def test_without_a_known_speed_of_every_working_node_the_capability_is_the_yardstick() -> None:
    partly = decide(speeds={"alpha": 2.0})
    alone = decide("even", weights={"alpha": 1.0, "beta": 0.0, "gamma": 0.0}, speeds={"alpha": 2.0})

    assert yardstick(partly, [partly.plan]).name == "weight"
    assert comparison(partly, attempts(partly, [], {}))["makespan_unit"] == "pictures / weight"
    assert yardstick(alone, [alone.plan]).name is None
    assert plans(alone)[0]["makespan"] == 20


def test_work_for_a_node_that_the_yardstick_calls_useless_never_ends() -> None:
    decision = decide(weights={"alpha": 1.0, "beta": 0.0, "gamma": 1.0})

    recorded, level = plans(decision, "algorithm1", level=values_of(decision, "level"))

    assert recorded["makespan_over_bound"] == 1
    assert (level["makespan"], level["makespan_over_bound"]) == (None, None)


def test_bytes_and_locality_are_those_of_the_plan() -> None:
    decision = decide(blocks=[block for block in decide().blocks if "gamma" not in block.replicas])
    block = decision.blocks[0]
    strange = replace(decision, plan=Plan({**dict.fromkeys(NODES, ()), "gamma": (Part(block, 0, 1),)}))

    (moved_all,) = attempts(strange, [], {})
    again = plans(decision, "local_only", weight=WEIGHTS)[1]

    assert moved_all.quality == decision.quality, "the recorded figures are shown as they were recorded"
    assert (again["bytes_moved"], again["locality_ratio"]) == (0, 1)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("halfway", "halfway has no value of beta, gamma"),
        ("heavy", "recorded are halfway, level, weight"),
    ],
)
def test_a_capability_that_was_not_recorded_for_every_node_is_refused(named: str, said: str) -> None:
    with pytest.raises(JobError, match=said):
        values_of(decide(), named)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"alpha": 1, "beta": 2}', "has no value of gamma"),
        ('{"alpha": 1, "beta": 2, "gamma": 3, "delta": 4}', "names delta"),
        ('{"alpha": 1, "beta": "2", "gamma": 3}', "a number for each node"),
        ('{"alpha": true, "beta": 2, "gamma": 3}', "a number for each node"),
        ("[1, 2, 3]", "a number for each node"),
        ("weight", "cannot be read as JSON"),
    ],
)
def test_a_file_that_is_no_capability_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(text)

    with pytest.raises(JobError, match=said):
        values_of(decide(), str(file))


NOTHING = {"PATH": "/nowhere", "JAVA_HOME": "/nowhere", "NODEWISE_URL": "http://127.0.0.1:1"}
"""An environment without a cluster, a Java and a service."""


def replay(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command where there is nothing but the record."""
    return nodewise("--home", str(tmp_path / "no-home"), "locality", "replay", *words, env=NOTHING)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    file = tmp_path / "decision.json"
    file.write_bytes(decide(speeds=SPEEDS).to_bytes())
    return file


def test_the_command_needs_nothing_but_the_record(tmp_path: Path, record: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({"alpha": 0, "beta": 1, "gamma": 1}))
    words = ["--policy", "algorithm1", "--policy", "even", "--capability", "level", "--capability", str(mine)]

    # A process of its own has no Java either that another test has started.
    command = [sys.executable, "-m", "nodewise", "--home", str(tmp_path / "no-home"), "locality", "replay", str(record)]
    done = subprocess.run([*command, *words, "--json"], capture_output=True, text=True, env=NOTHING, timeout=240)

    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert body["makespan_unit"] == "seconds"
    assert [(row["policy"], row["capability"], row["recorded"]) for row in body["plans"]] == [
        ("algorithm1", "weight", True),
        ("algorithm1", "level", False),
        ("even", "level", False),
        ("algorithm1", str(mine), False),
        ("even", str(mine), False),
    ]
    assert body["plans"][3]["images"] == {"alpha": 0, "beta": 20, "gamma": 20}


def test_without_options_every_policy_stands_beside_the_recorded_plan(tmp_path: Path, record: Path) -> None:
    done = replay(tmp_path, str(record))

    assert done.returncode == 0, done.stderr
    for name in POLICIES:
        assert name in done.stdout
    assert "at the speeds the nodes had in earlier jobs" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["RECORD", "--policy", "best"], ["best", "algorithm1"]),
        (["RECORD", "--capability", "heavy"], ["heavy", "level"]),
        (["no-such.json"], ["no-such.json", "job id"]),
        (["DAMAGED"], ["damaged.json", "not a decision record"]),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_one_sentence(
    tmp_path: Path, record: Path, words: list[str], said: list[str]
) -> None:
    damaged = tmp_path / "damaged.json"
    damaged.write_bytes(record.read_bytes()[:100])
    files = {"RECORD": str(record), "DAMAGED": str(damaged)}

    done = replay(tmp_path, *(files.get(word, word) for word in words))

    assert done.returncode == 1
    (sentence,) = done.stderr.strip().splitlines()
    assert sentence.startswith("Error: ")
    assert all(word in sentence for word in said)
