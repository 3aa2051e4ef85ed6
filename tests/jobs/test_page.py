"""The application master's page: what it says, that it loads itself again, and that nobody's words become markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from jobs.application.page import REFRESH_SECONDS, page, record_page
from jobs.application.status import JobStatus
from tests.jobs.following import JOB, NODES, STATUS

COPIES = replace(
    STATUS,
    kind="command",
    unit="copies",
    nodes=(replace(NODES[0], local=0),),
    section={"Program": "./program", "Exit codes": "0 (60 x), 3 (1 x)"},
)
URL = "http://nn:9870/r?op=OPEN"
COMMAND = f"nodewise job report {JOB} --html FILE"


class Page(HTMLParser):
    """Tags with their attributes, the cells of the table row by row, and all text."""

    def __init__(self, status: JobStatus, report: str = "") -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(page(status, report))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()


def test_it_loads_itself_again_and_nothing_from_elsewhere() -> None:
    shown = Page(STATUS)

    refresh = {"http-equiv": "refresh", "content": str(REFRESH_SECONDS)}
    assert ("meta", refresh) in shown.tags
    assert not {tag for tag, _ in shown.tags} & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"https?:|url\((?!#)|@import|src=", page(STATUS))


def test_each_node_has_a_row_with_all_that_is_known_of_it() -> None:
    rows = Page(STATUS).rows

    assert rows[1] == ["worker1", "working", "100", "60", "54", "8", "20.0", "0", "0", ""]
    assert rows[2] == ["worker2", "lost", "100", "10", "10", "0", "5.00", "2", "3", "lost node"]


def test_the_job_s_own_figures_stand_above() -> None:
    text = "".join(Page(replace(STATUS, attempt=2, news=("worker2 was lost",))).text.split())

    assert "Staterunning,attempt2" in text
    assert "Images70of200,2withanerror" in text
    assert "Timeleft6.50safter12.0s" in text
    assert "worker2waslost" in text


def test_a_bar_is_as_long_as_what_a_node_has_done() -> None:
    (drawing,) = (
        ElementTree.fromstring(svg)
        for svg in re.findall(r"<svg.*?</svg>", page(STATUS), re.DOTALL)
        if 'role="img"' in svg
    )
    widths = [float(bar.get("width", "")) for bar in drawing.iter("rect")]

    assert widths == pytest.approx([196 * 0.54, 196 * 0.06, 196 * 0.10], abs=0.1)


@pytest.mark.parametrize(
    ("state", "report", "words", "links"),
    [
        ("running", "", f"When the job has ended: {COMMAND}.", []),
        ("running", URL, f"When the job has ended: download the report, or {COMMAND}.", [URL]),
        ("storing", URL, f"The results are being stored; then download the report, or {COMMAND}.", [URL]),
        ("storing", "hdfs:///out/report.html", f"the report is at hdfs:///out/report.html, or {COMMAND}.", []),
        ("storing", "javascript:alert(1)", f"the report is at javascript:alert(1), or {COMMAND}.", []),
    ],
)
def test_the_report_is_linked_as_what_it_is_a_download(state: str, report: str, words: str, links: list[str]) -> None:
    shown = Page(replace(STATUS, state=state), report)

    assert words in " ".join(shown.text.split())
    assert [attrs["href"] for tag, attrs in shown.tags if tag == "a"] == links


def test_what_a_node_or_a_path_is_called_cannot_become_markup() -> None:
    evil = '"><script>x</script>'
    node = replace(NODES[0], node_name=evil, state=evil, said=evil)
    text = page(replace(STATUS, job_id=evil, state=evil, nodes=(node,), news=(evil,)), f"http://{evil}")

    assert "<script>" not in text


def test_a_job_without_results_says_nothing_of_disks_and_shows_what_its_kind_tells() -> None:
    shown = Page(COPIES)

    assert ["Program", "./program"] in shown.rows
    assert "Exit codes0 (60 x), 3 (1 x)" in shown.text
    assert ["worker1", "working", "100", "60", "8", "20.0", "0", "0", ""] in shown.rows
    assert "own disk" not in shown.text.lower()
    assert "another node" not in shown.text
    assert "Own disk" in Page(replace(COPIES, section=None), URL).text


def test_what_stays_of_a_job_is_a_page_that_stays_as_it_is() -> None:
    text = record_page(COPIES, "2 copies ended with exit code 0")

    assert "2 copies ended with exit code 0" in text
    assert "0 (60 x), 3 (1 x)" in text
    assert "refresh" not in text and "loads itself again" not in text
    assert "When the job has ended" not in text


def test_a_job_that_plans_has_a_page() -> None:
    shown = Page(JobStatus("application_1_0001", "planning", 1, 0, 0, 0, 0.2, None, ()))

    assert "No node has a part yet." in shown.text
    assert "images" not in shown.text.lower(), "whose kind has not said yet what it counts"
    assert "unknown" in shown.text
