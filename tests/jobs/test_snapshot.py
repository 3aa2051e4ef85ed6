"""What a job learns from the real service, and what it does not even ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Producer
from jobs.division.decision import Decision
from jobs.division.readings import Program, read_capability
from jobs.errors import JobError
from jobs.itemwork.snapshot import _alike, _all_alike, note, read_capabilities
from tests.jobs.decisions import WEIGHTS, decide, make_blocks
from tests.jobs.stored import SETTINGS


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of which values are read in bulk."""
    found: list[str] = []
    read = InfoClient.data_many

    def noted(client: InfoClient, names: Sequence[str], *more: Any) -> Any:
        found.extend(names)
        return read(client, names, *more)

    monkeypatch.setattr(InfoClient, "data_many", noted)
    return found


def test_numbers_that_judge_are_read_and_objects_are_not(client: InfoClient, asked: list[str]) -> None:
    for name, unit in (("weight", "kg"), ("height", "m"), ("places", "json")):
        client.put_producer(Producer(name, cmd="", time_max=60, kind=Kind.PROGRAM, unit=unit))
        client.put_value(name, "alpha", "2")
    decides = read_capability(client, "weight", Program("mxnet.alexnet", 32), ["alpha"], 10)
    asked.clear()

    found = read_capabilities(client, "weight", decides)

    assert {name: readings.numbers() for name, readings in found.items()} == {
        "weight": {"alpha": 2},
        "height": {"alpha": 2},
    }
    assert asked == ["height"]


def test_a_later_attempt_knows_from_the_decision_why_all_nodes_were_alike() -> None:
    settings = replace(SETTINGS, fallback="even")
    alike = _alike(settings, WEIGHTS, JobError("weight is known nowhere"))
    known = _all_alike(make_blocks(), {}, settings, alike)
    decision = replace(decide("even"), policy=known.policy, capabilities=known.capabilities)

    again = Decision.from_bytes(decision.to_bytes(), "decision.json")

    assert note(again) == "Divided by even with all nodes alike, because there was no weight: weight is known nowhere"
    assert note(decide()) == ""
