"""The report: the keys people rely on, figures that follow from each other, pages that need nothing else."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from jobs.commands.job.tables import comparison
from jobs.errors import JobError
from jobs.reports.pages import comparison_html, html, remarks
from jobs.reports.report import Failure, JobReport, LeaseReport, NodeReport
from jobs.reports.timeline import KINDS, Bar, kind, merge, timeline

SAMPLE: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "fixtures/report_sample.json").read_text(encoding="utf-8")
)
JOB_KEYS = {
    *("job_id", "application_id", "engine", "policy", "capability", "images", "errors", "started_at"),
    *("makespan_seconds", "lower_bound_seconds", "makespan_over_bound", "bytes_read", "bytes_moved"),
    *("bytes_moved_optimal", "locality_ratio", "nodes", "inputs", "weights", "state", "wall_seconds", "note"),
    *("bytes_moved_planned", "first_result_seconds", "attempts", "leases", "failures", "phases"),
    *("master_memory_mb", "master_peak_mb", "whole_seconds", "whole_bound_seconds", "whole_over_bound"),
}
LEASE_KEYS = {"node_name", "begin", "end", "images", "local_images", "outcome", "origin"}
FAILURE_KEYS = {"node_name", "container_id", "kind", "seconds", "said", "counts"}
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
    assert body["leases"][0].keys() == LEASE_KEYS
    assert body["failures"][0].keys() == FAILURE_KEYS
    assert body["inputs"][0].keys() >= {"data_name", "node_name", "data_value", "age"}
    assert body["weights"].keys() == {"source", "meaning"}
    assert JobReport.from_json(body) == report


def test_the_figures_follow_from_the_nodes(report: JobReport) -> None:
    nodes = (NodeReport("a", 1.0, 30, 30, 30, 3.0, 10.0), NodeReport("b", 1.0, 10, 10, 0, 4.0, 2.5))
    small = replace(report, items=40, nodes=nodes)
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
        assert not re.search(r"https?:|url\((?!#)|@import|src=", page)


def test_every_drawing_is_named_and_has_its_figures_in_a_table(report: JobReport) -> None:
    page = html(report)
    parsed = Page(page)
    drawings = [chart for chart in charts(page) if chart.get("role") == "img"]
    assert len(drawings) == 6
    assert all(chart.get("aria-label") for chart in drawings)
    assert {"lang": "en"} in [attrs for tag, attrs in parsed.tags if tag == "html"]
    assert [tag for tag, _ in parsed.tags].count("table") == 4
    for node in report.nodes:
        assert parsed.text.count(node.node_name) >= 4
    for value in report.inputs:
        assert value.data_value in parsed.text
    assert report.weights.meaning in parsed.text
    assert "2 could not be read" in parsed.text
    assert "prefers-color-scheme: dark" in page


def test_bars_are_as_long_as_their_figures(report: JobReport) -> None:
    seconds = next(chart for chart in charts(html(report)) if "Seconds of work" in chart.get("aria-label", ""))
    widths = [float(bar.get("width", "")) for bar in seconds.iter("rect")]
    expected = [node.seconds / report.makespan_seconds for node in report.nodes]
    assert [width / max(widths) for width in widths] == pytest.approx(expected, abs=0.002)


def test_a_comparison_draws_all_jobs_on_one_scale(report: JobReport) -> None:
    slow = replace(report, nodes=tuple(replace(n, seconds=2 * n.seconds) for n in report.nodes))
    drawings = [chart for chart in charts(comparison_html([report, slow])) if chart.get("role") == "img"]
    fast_bars, slow_bars = ([float(bar.get("width", "")) for bar in drawings[i].iter("rect")] for i in (0, 2))
    assert slow_bars == pytest.approx([2 * width for width in fast_bars], abs=0.11)


def test_text_from_a_job_cannot_become_markup(report: JobReport) -> None:
    evil = "<img src=y>"
    failure, lease = report.failures[0], report.leases[0]
    named = replace(
        report,
        job_id="<script>x</script>",
        note="<b>&",
        capability='"><img src=x>',
        leases=(replace(lease, node_name=evil, origin=evil),),
        failures=(replace(failure, node_name=evil, said=evil, kind=evil),),
    )
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
    assert "perf_history, algorithm1: images" in page
    assert "perf_history, maxflow: images" in page


def test_comparing_nothing_is_refused() -> None:
    for compare in (comparison, comparison_html):
        with pytest.raises(JobError, match="nothing to compare"):
            compare([])


def test_a_node_that_was_given_nothing_counts_in_the_bound_with_the_speed_it_had_before(report: JobReport) -> None:
    idle = NodeReport("idle", 0.0, 0, 0, 0, 0.0, 0.0, known_items_per_second=30.0)
    busy = NodeReport("busy", 1.0, 400, 400, 400, 40.0, 10.0)

    assert replace(report, items=400, nodes=(idle, busy)).lower_bound_seconds == pytest.approx(10.0)
    assert replace(report, items=400, nodes=(busy,)).lower_bound_seconds == pytest.approx(40.0)


def test_a_report_from_before_there_were_leases_is_still_read_and_drawn() -> None:
    new = ("leases", "failures", "attempts", "first_result_seconds", "bytes_moved_planned", "master_peak_mb")
    old = JobReport.from_json({key: value for key, value in SAMPLE.items() if key not in new})

    assert old.bytes_moved_planned == old.bytes_moved == SAMPLE["bytes_moved"]
    assert (old.attempts, old.leases, old.failures) == (1, (), ())
    assert "Time line" not in Page(html(old)).text
    assert remarks(old) == ["2.61 MB moved; by the plan 2.61 MB, at least 0 B for what each node did"]
    assert "Makespan" in Page(comparison_html([old])).text


def lease(node: str, begin: float, end: float, **other: Any) -> LeaseReport:
    fields: dict[str, Any] = {"items": 8, "local_items": 8, "outcome": "accepted", "origin": node} | other
    return LeaseReport(node, begin, end, **fields)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lease("a", 0, 1), "local"),
        (lease("a", 0, 1, local_items=4), "local"),
        (lease("a", 0, 1, local_items=3), "moved"),
        (lease("a", 0, 1, origin="b"), "stolen"),
        (lease("a", 0, 1, origin=None), "stolen"),
        (lease("a", 0, 1, outcome="this lease has ended, and its images were given back"), "refused"),
    ],
)
def test_a_lease_is_drawn_as_what_it_was(made: LeaseReport, expected: str) -> None:
    assert kind(made) == expected
    assert list(KINDS) == ["local", "moved", "stolen", "refused"]


def test_pictures_that_counted_on_another_node_than_planned_are_stolen(report: JobReport) -> None:
    late = lease("b", 1, 2, items=16, origin="a", outcome="expired")
    some = replace(report, leases=(lease("a", 0, 1), lease("b", 0, 1, origin="a"), late))

    assert some.stolen_items == 8


def test_a_lease_that_waited_in_a_worker_is_drawn_from_when_it_was_worked_on(report: JobReport) -> None:
    taken_ahead = (lease("a", 0.0, 4.0), lease("a", 0.5, 8.0))
    (lane,) = timeline(replace(report, nodes=(), failures=(), leases=taken_ahead)).lanes

    assert [(bar.begin, bar.end) for bar in lane.bars] == [(0.0, 4.0), (4.0, 8.0)]


def test_every_lease_is_in_a_bar_and_ten_thousand_of_them_stay_few(report: JobReport) -> None:
    random = Random(1)
    leases = []
    for node in range(4):
        at = 0.0
        for _ in range(2500):
            end = at + random.uniform(0.1, 1.0)
            other: dict[str, Any] = random.choice([{}, {}, {"local_items": 0}, {"origin": "z"}, {"outcome": "late"}])
            leases.append(lease(f"node{node}", at, end, **other))
            at = end
    many = replace(report, nodes=(), failures=(), leases=tuple(leases))

    line = timeline(many)

    drawn = [bar for lane in line.lanes for bar in (*lane.bars, *lane.refused)]
    assert sum(bar.leases.total() for bar in drawn) == 10_000
    assert sum(bar.items.total() for bar in drawn) == 80_000
    assert all(lane.all and lane.all.leases.total() == 2500 for lane in line.lanes)
    assert len(drawn) < 4000
    page = html(many)
    assert len(page) < 1_500_000
    assert "2,500" in Page(page).text or "2500" in Page(page).text


def test_a_short_bar_among_long_ones_of_another_kind_stays_visible() -> None:
    def bar(begin: float, end: float, what: str) -> Bar:
        return Bar(begin, end, Counter({what: 1}), Counter({what: 8}))

    bars = [bar(0, 50, "local"), bar(50, 50.1, "stolen"), bar(50.1, 90, "local"), bar(90, 90.1, "local")]
    kinds = [one.kind for one in merge(bars, 1.0)]

    assert kinds == ["local", "stolen", "local"]


def test_a_pause_that_can_be_seen_is_not_bridged() -> None:
    bars = [Bar(at, at + 0.1, Counter({"local": 1}), Counter({"local": 8})) for at in (0.0, 0.1, 5.0)]

    assert [(bar.begin, bar.end) for bar in merge(bars, 1.0)] == [(0.0, 0.2), (5.0, 5.1)]


def timeline_drawing(report: JobReport) -> ElementTree.Element:
    return next(one for one in charts(html(report)) if one.get("aria-label", "").startswith("Time line"))


def test_the_time_line_has_a_texture_for_each_kind_and_a_cross_for_each_failure(report: JobReport) -> None:
    moved = replace(report.leases[0], local_items=0)
    drawing = timeline_drawing(replace(report, leases=(moved, *report.leases[1:])))
    bars = [one for one in drawing.iter("rect") if one.find("title") is not None]

    assert {bar.get("fill") or bar.get("class") for bar in bars} == {
        *("t-local", "url(#texture-moved)", "url(#texture-stolen)", "url(#texture-refused)"),
    }
    assert {one.get("id") for one in drawing.iter("pattern")} == {f"texture-{one}" for one in list(KINDS)[1:]}
    crosses = [one for one in drawing.iter("path") if one.get("class") == "failure"]
    assert [cross.findtext("title") for cross in crosses] == [
        "memory kill at 5.50 s: 1.3 GB of 1.2 GB physical memory used"
    ]


def test_bars_of_the_time_line_stand_where_their_seconds_are(report: JobReport) -> None:
    some = replace(report, nodes=(), failures=(), leases=(lease("a", 0, 5), lease("b", 5, 10)))
    drawing = timeline_drawing(some)
    first, second = (one for one in drawing.iter("rect") if one.find("title") is not None)
    zero = next(line for line in drawing.iter("line") if line.get("class") == "grid")

    assert float(first.get("x", "")) == float(zero.get("x1", ""))
    assert float(first.get("width", "")) == float(second.get("width", "")) == 450
    assert float(second.get("x", "")) - float(first.get("x", "")) == 450
    assert float(second.get("y", "")) > float(first.get("y", ""))


def test_the_table_under_the_time_line_says_the_same(report: JobReport) -> None:
    text = " ".join(Page(html(report)).text.split())

    assert "The time line as a table" in text
    done = {node.node_name: node.items for node in report.nodes}
    for lane in timeline(report).lanes:
        assert lane.all
        assert sum(lane.all.items[one] for one in list(KINDS)[:3]) == done[lane.node_name]


def test_what_went_otherwise_than_planned_is_told_in_one_line_each(report: JobReport) -> None:
    several = replace(report, failures=(Failure("b", "c", "lost node", 9.0), *report.failures))

    assert remarks(several) == [
        "2.61 MB moved; by the plan 2.41 MB, at least 0 B for what each node did",
        f"{report.stolen_items} images were done by another node than planned",
        "the application master was started 2 times",
        "127.0.1.14 at 5.5 s: memory kill: 1.3 GB of 1.2 GB physical memory used",
        "b at 9.0 s: lost node",
    ]
    assert report.stolen_items > 0


def test_the_page_shows_planned_moved_and_fewest_bytes_and_the_failures(report: JobReport) -> None:
    text = " ".join(Page(html(report)).text.split())

    assert "planned 2.41 MB" in text
    assert "1.3 GB of 1.2 GB physical memory used" in text
    drawing = next(one for one in charts(html(report)) if one.get("aria-label", "").startswith("Bytes moved"))
    widths = [float(bar.get("width", "")) for bar in drawing.iter("rect")]
    assert widths == pytest.approx([196 * 2412480 / 2612480, 196], abs=0.1), "nothing has no bar"
