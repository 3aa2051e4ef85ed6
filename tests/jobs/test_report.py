"""The report: the keys people rely on, figures that follow from each other, pages that need nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from jobs.errors import JobError
from jobs.report import JobReport, NodeReport, comparison, comparison_html, html

SAMPLE: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "fixtures/report_sample.json").read_text(encoding="utf-8")
)
JOB_KEYS = {
    *("job_id", "application_id", "engine", "policy", "capability", "images", "errors", "started_at"),
    *("makespan_seconds", "lower_bound_seconds", "makespan_over_bound", "bytes_read", "bytes_moved"),
    *("bytes_moved_optimal", "locality_ratio", "nodes", "inputs", "weights", "state", "wall_seconds", "note"),
}
NODE_KEYS = {
    *("node_name", "capability", "planned_images", "images", "local_images", "seconds", "images_per_second"),
    "known_images_per_second",
}


@pytest.fixture
def report() -> JobReport:
    return JobReport.from_json(SAMPLE)


class Page(HTMLParser):
    """What a browser would find: tags with their attributes, and the visible text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def charts(page: str) -> list[ElementTree.Element]:
    """Every chart parsed as XML, so that a page with a broken drawing fails."""
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def test_the_json_has_exactly_the_agreed_keys_and_survives_a_round_trip(report: JobReport) -> None:
    body = json.loads(json.dumps(report.to_json()))
    assert body == SAMPLE
    assert body.keys() == JOB_KEYS
    assert body["nodes"][0].keys() == NODE_KEYS
    assert body["inputs"][0].keys() >= {"data_name", "node_name", "data_value", "age"}
    assert body["weights"].keys() == {"source", "meaning"}
    assert JobReport.from_json(body) == report


def test_the_figures_follow_from_the_nodes(report: JobReport) -> None:
    nodes = (NodeReport("a", 1.0, 30, 30, 30, 3.0, 10.0), NodeReport("b", 1.0, 10, 10, 0, 4.0, 2.5))
    small = replace(report, images=40, nodes=nodes)
    assert small.makespan_seconds == 4.0
    assert small.lower_bound_seconds == pytest.approx(40 / 12.5)
    assert small.makespan_over_bound == pytest.approx(1.25)
    assert small.locality_ratio == 0.75


@pytest.mark.parametrize(
    "body", [{}, [], {**SAMPLE, "nodes": None}, {**SAMPLE, "nodes": [{"node_name": "a"}]}, {**SAMPLE, "weights": 3}]
)
def test_what_is_no_report_is_refused_in_a_sentence(body: Any) -> None:
    with pytest.raises(JobError, match=r"not a job's report\.json"):
        JobReport.from_json(body)


def test_keys_of_a_newer_version_are_ignored(report: JobReport) -> None:
    assert JobReport.from_json({**SAMPLE, "added_later": 1}) == report


def test_the_pages_load_nothing_from_elsewhere(report: JobReport) -> None:
    for page in (html(report), comparison_html([report, report])):
        assert not {tag for tag, _ in Page(page).tags} & {"script", "link", "img", "iframe", "object"}
        assert not re.search(r"https?:|url\(|@import|src=", page)


def test_every_drawing_is_named_and_has_its_figures_in_a_table(report: JobReport) -> None:
    page = html(report)
    parsed = Page(page)
    drawings = [chart for chart in charts(page) if chart.get("role") == "img"]
    assert len(drawings) == 3
    assert all(chart.get("aria-label") for chart in drawings)
    assert {"lang": "en"} in [attrs for tag, attrs in parsed.tags if tag == "html"]
    assert [tag for tag, _ in parsed.tags].count("table") == 2
    for node in report.nodes:
        assert parsed.text.count(node.node_name) >= 4
    for value in report.inputs:
        assert value.data_value in parsed.text
    assert report.weights.meaning in parsed.text
    assert "2 could not be read" in parsed.text
    assert "prefers-color-scheme: dark" in page


def test_bars_are_as_long_as_their_figures(report: JobReport) -> None:
    seconds = charts(html(report))[0]
    widths = [float(bar.get("width", "")) for bar in seconds.iter("rect")]
    expected = [node.seconds / report.makespan_seconds for node in report.nodes]
    assert [width / max(widths) for width in widths] == pytest.approx(expected, abs=0.002)


def test_a_comparison_draws_all_jobs_on_one_scale(report: JobReport) -> None:
    slow = replace(report, nodes=tuple(replace(n, seconds=2 * n.seconds) for n in report.nodes))
    drawings = [chart for chart in charts(comparison_html([report, slow])) if chart.get("role") == "img"]
    fast_bars, slow_bars = ([float(bar.get("width", "")) for bar in drawings[i].iter("rect")] for i in (0, 2))
    assert slow_bars == pytest.approx([2 * width for width in fast_bars], abs=0.11)


def test_text_from_a_job_cannot_become_markup(report: JobReport) -> None:
    named = replace(report, job_id="<script>x</script>", note="<b>&", capability='"><img src=x>')
    for page in (html(named), comparison_html([named])):
        assert "<script>" not in page
        assert "<img" not in page
        assert "<b>" not in page


@pytest.mark.parametrize("nodes", [(), (NodeReport("a", 0.0, 0, 0, 0, 0.0, 0.0),)], ids=["no node", "nothing done"])
def test_a_job_that_did_nothing_still_has_a_page(report: JobReport, nodes: tuple[NodeReport, ...]) -> None:
    failed = replace(report, nodes=nodes, inputs=(), state="FAILED", note="no node was free")
    assert failed.makespan_over_bound is None
    assert json.loads(json.dumps(failed.to_json(), allow_nan=False))["makespan_over_bound"] is None
    assert "FAILED" in Page(html(failed)).text
    assert "unknown" in Page(comparison_html([failed])).text


def table_rows(reports: list[JobReport]) -> list[list[str]]:
    """The words of each line of the comparison."""
    console = Console(width=80)
    with console.capture() as printed:
        console.print(comparison(reports))
    return [re.findall(r"[\w.]+", line) for line in printed.get().splitlines()]


def test_the_table_has_a_row_per_node_and_the_makespan_beside_the_bound(report: JobReport) -> None:
    rows = table_rows([replace(report, capability="perf_even"), report])
    assert ["127.0.1.14", "53", "8.7"] in rows
    assert ["perf_even", "127.0.1.11", "116", "8.3"] in rows
    assert ["perf_history", "127.0.1.11", "116", "8.3"] in rows
    assert rows.count(["makespan", "400", "8.7", "8.4", "1.03", "2.61", "MB"]) == 2


def test_the_policy_stands_beside_the_capability_in_table_and_page(report: JobReport) -> None:
    other = replace(report, policy="maxflow")
    assert ["algorithm1", "127.0.1.12", "116", "8.2"] in table_rows([report, other])
    assert ["maxflow", "127.0.1.12", "116", "8.2"] in table_rows([report, other])
    assert ["maxflow"] in table_rows([replace(other, nodes=())])
    page = Page(comparison_html([report, other])).text
    assert "perf_history, algorithm1: pictures" in page
    assert "perf_history, maxflow: pictures" in page


def test_comparing_nothing_is_refused() -> None:
    for compare in (comparison, comparison_html):
        with pytest.raises(JobError, match="nothing to compare"):
            compare([])


def test_a_node_that_was_given_nothing_counts_in_the_bound_with_the_speed_it_had_before(report: JobReport) -> None:
    idle = NodeReport("idle", 0.0, 0, 0, 0, 0.0, 0.0, known_images_per_second=30.0)
    busy = NodeReport("busy", 1.0, 400, 400, 400, 40.0, 10.0)

    assert replace(report, images=400, nodes=(idle, busy)).lower_bound_seconds == pytest.approx(10.0)
    assert replace(report, images=400, nodes=(busy,)).lower_bound_seconds == pytest.approx(40.0)
