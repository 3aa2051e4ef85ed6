"""Whatever a kind of job divides is called by the kind's own word, in plans, explanations, reports and on pages."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from infosvc.wire.client import InfoClient
from jobs.division import speed_history
from jobs.division.decision import Decision
from jobs.division.explanation import explanation, heading, sentences
from jobs.division.replay import attempts, comparison
from jobs.reports.pages import comparison_html, html, remarks
from jobs.reports.report import JobReport, Weights
from jobs.reports.texts import count_text
from locality.program_names import speed_name
from locality.types import Block
from tests.jobs.decisions import decide
from tests.jobs.played import make_report

UNIT = "sentences"
BLOCKS = [Block(f"/data/text/{number}", 3, 300, (("alpha", "beta")[number % 2],)) for number in range(8)]


@pytest.fixture
def decision() -> Decision:
    return replace(decide("maxflow", blocks=BLOCKS), input="/data/text", unit=UNIT)


@pytest.fixture
def report() -> JobReport:
    return replace(make_report(), unit=UNIT, weights=Weights(""))


def test_a_decision_keeps_the_word_and_says_nothing_of_images(decision: Decision) -> None:
    again = Decision.from_bytes(decision.to_bytes(), "decision.json")
    said = explanation(again)
    text = " ".join([*heading(said), *sentences(said)])

    assert again == decision
    assert "24 sentences of /data/text" in text
    assert "sentences by the formula" in text
    assert "image" not in text.replace("images/second", ""), "only the capability's own unit says it"
    plans = comparison(again, attempts(again, [], {}))
    assert plans["makespan_unit"] == "sentences / weight"
    assert plans["makespan_meaning"].startswith("sentences per unit of weight")


def test_the_word_stands_in_the_files_of_other_items_alone(decision: Decision, report: JobReport) -> None:
    assert json.loads(decision.to_bytes())["unit"] == report.to_json()["unit"] == UNIT
    assert "unit" not in json.loads(replace(decision, unit="images").to_bytes())
    assert "unit" not in replace(report, unit="images").to_json()


def test_a_report_and_its_pages_say_nothing_of_images(report: JobReport) -> None:
    again = JobReport.from_json(json.loads(json.dumps(report.to_json())))

    assert again == report
    assert "1 sentences were done by another node than planned" in remarks(again)
    for page in (html(again), comparison_html([again])):
        assert "image" not in page.lower()
        assert "Sentences" in page
    assert "Weights" not in html(again)
    mixed = comparison_html([again, replace(again, unit="images")])
    assert '<th scope="col" class="n">Items</th>' in mixed


def test_the_speeds_of_a_program_are_registered_in_its_unit(client: InfoClient) -> None:
    speed_history.prepare(client, "translator", 4, UNIT)

    known = client.producer(speed_name("translator", 4))
    assert (known.unit, known.help) == (
        "sentences/second",
        "Speed at which the node ran its last translator job with 4 sentences at a time",
    )


@pytest.mark.parametrize(
    ("count", "unit", "text"), [(1, "images", "1 image"), (0, "images", "0 images"), (1, "copies", "1 copy")]
)
def test_one_of_something_is_singular(count: int, unit: str, text: str) -> None:
    assert count_text(count, unit) == text
