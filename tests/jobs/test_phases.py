"""What a job's time goes into before its first row, as its master and its workers tell, and as its report says it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.application.calls import Request
from jobs.itemwork.phases import SUBMITTED, Phases
from jobs.own_age import own_age
from jobs.reports.pages import html, remarks
from jobs.reports.phases import LIBRARIES, MASTER, QUEUE, STORE, tell_phases
from jobs.reports.report import ACCEPTED, CONTAINER, NETWORK, PLAN, JobReport, LeaseReport, NodeReport, Phase

SAMPLE: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "fixtures/report_sample.json").read_text(encoding="utf-8")
)
REPORT = replace(
    JobReport.from_json(SAMPLE),
    phases=(
        Phase(QUEUE, -3.0, -1.8),
        Phase(MASTER, -1.8, 0.5),
        Phase(PLAN, 0.4, 0.9),
        Phase(CONTAINER, 0.5, 1.5, "n1"),
        Phase(CONTAINER, 0.5, 4.5, "n2"),
        Phase(LIBRARIES, 1.6, 2.4, "n1"),
        Phase(NETWORK, 2.4, 3.0, "n1"),
        Phase(STORE, 9.0, 9.25),
    ),
    leases=(
        LeaseReport("n2", 5.0, 6.0, 8, 8, ACCEPTED, "n2"),
        LeaseReport("n1", 3.1, 3.9, 8, 8, "expired", "n1"),
        LeaseReport("n1", 3.1, 4.0, 8, 8, ACCEPTED, "n1"),
    ),
)


class Clock:
    """Seconds that a test tells."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def beat(phases: Phases, node: str = "n1", **told: Any) -> None:
    body = {"node_name": node, "container_id": f"{node}-1", **told}
    phases.hear(Request("", json.dumps(body).encode()))


def lasted(phases: Phases) -> dict[tuple[str, str], tuple[float, float]]:
    return {(one.name, one.node_name): (one.begin, one.end) for one in phases.list_all()}


def test_what_comes_before_the_first_row_is_noted_once_for_each_node(monkeypatch: pytest.MonkeyPatch) -> None:
    submitted = round((time.time() - own_age() - 2.0) * 1000)
    monkeypatch.setenv(SUBMITTED, str(submitted))
    clock = Clock()
    phases = Phases(clock)
    clock.now = 1.0
    time_before, age_before = time.time(), own_age()
    phases.note_asked()
    time_after, age_after = time.time(), own_age()
    clock.now = 3.0
    phases.note_started("n1")
    clock.now = 7.0
    for _ in range(2):  # the answer to the first one may be lost
        beat(phases, age=3.5, libraries=1.5, network=0.5)
        clock.now = 8.0
    beat(phases)
    phases.note_started("n1")

    found = lasted(phases)
    (begun, launched), (begin, asked) = found.pop((QUEUE, "")), found.pop((MASTER, ""))
    assert (launched, asked) == (begin, 1.0)
    assert time_before - age_after < launched - begun + submitted / 1000 < time_after - age_before
    assert age_before < asked - begin < age_after
    assert found == {(CONTAINER, "n1"): (1.0, 3.0), (LIBRARIES, "n1"): (3.5, 5.0), (NETWORK, "n1"): (5.0, 5.5)}


def test_a_later_attempt_tells_nothing_as_it_does_not_know_what_the_ones_before_have_waited_for() -> None:
    phases = Phases(Clock(), is_first=False)
    phases.note_asked()
    phases.note_started("n1")
    beat(phases, age=1.0, libraries=0.5, network=0.25)

    assert phases.list_all() == ()
    assert phases.start_seconds() == {"n1": 0.75}


def test_workers_of_a_pool_were_there_before() -> None:
    phases = Phases(Clock())

    with phases.lasting(PLAN):
        phases.note_started("n1")

    assert [name for name, _ in lasted(phases)] == [PLAN]


@pytest.mark.parametrize(
    "told",
    [{"age": 1.0, "network": 2.0}, {"age": -1.0}, {"age": 1.0, "libraries": -1.0}, {"libraries": 1.0}],
)
def test_times_that_cannot_be_are_not_noted(told: dict[str, Any]) -> None:
    phases = Phases(Clock())
    phases.note_asked()
    phases.note_started("n1")

    beat(phases, **told)

    assert [name for name, _ in lasted(phases) if name in (LIBRARIES, NETWORK)] == []


def test_nodes_without_a_container_tell_nothing() -> None:
    phases = Phases(Clock())

    beat(phases, "n2", age=1.0)

    assert lasted(phases) == {}


def test_a_sentence_tells_of_the_node_with_the_first_row() -> None:
    said = (
        "first row on n1 after 7.0 s: queue 1.2 s, master 2.3 s, plan 0.5 s, container 1.0 s, libraries 0.8 s, "
        "network 0.6 s; storing 0.2 s"
    )
    assert tell_phases(REPORT) == said
    assert said in remarks(REPORT)
    assert "waits for its container" in html(REPORT)
    assert REPORT.to_json()["phases"][0].keys() == {"name", "begin", "end", "node_name"}
    assert JobReport.from_json(json.loads(json.dumps(REPORT.to_json()))) == REPORT


def test_the_bound_from_the_first_container_on_counts_when_each_node_could_begin() -> None:
    nodes = (NodeReport("n1", 1.0, 8, 30, 30, 3.0, 10.0), NodeReport("n2", 1.0, 8, 10, 10, 2.0, 5.0))
    late = replace(REPORT, items=40, nodes=nodes, phases=(*REPORT.phases, Phase(NETWORK, 4.5, 5.5, "n2")))

    # The first container was started at 1.5. n1 could begin 1.5 s later, n2 4 s later; 10 (T - 1.5) + 5 (T - 4) = 40.
    assert late.whole_seconds == pytest.approx(6.0 - 1.5)
    assert late.whole_bound_seconds == pytest.approx((40 + 15 + 20) / 15)
    assert late.whole_over_bound == pytest.approx(4.5 / 5.0)
    assert "from the first container on" in html(late)


def test_nobody_could_begin_before_there_was_a_plan() -> None:
    nodes = (NodeReport("n1", 1.0, 8, 30, 30, 3.0, 10.0), NodeReport("n2", 1.0, 8, 10, 10, 2.0, 5.0))
    phases = (*REPORT.phases, Phase(NETWORK, 4.5, 5.5, "n2"), Phase(PLAN, 0.5, 6.5))

    assert replace(REPORT, items=40, nodes=nodes, phases=phases).whole_bound_seconds == pytest.approx(5.0 + 40 / 15)


def test_without_knowing_when_a_node_could_begin_there_is_no_such_bound() -> None:
    nodes = (NodeReport("n1", 1.0, 8, 30, 30, 3.0, 10.0), NodeReport("n2", 1.0, 8, 10, 10, 2.0, 5.0))

    assert replace(REPORT, items=40, nodes=nodes).whole_over_bound is None
    assert JobReport.from_json(SAMPLE).whole_over_bound is None


def test_a_report_from_before_there_were_phases_says_nothing_of_them() -> None:
    older = JobReport.from_json(SAMPLE)

    assert tell_phases(older) == tell_phases(replace(REPORT, phases=REPORT.phases[-1:])) == ""
    assert "waits for its container" not in html(older)
