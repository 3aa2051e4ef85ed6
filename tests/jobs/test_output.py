"""A result is complete and has every image once, or there is none."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.errors import JobError
from jobs.images.rows import SCHEMA
from jobs.itemwork.results import part_files
from jobs.itemwork.results.output import Output, report_url
from jobs.reports.report import JobReport, Weights
from tests.jobs.stored import SPEC, Written

ROOT = Path(__file__).resolve().parents[2]


def table(*paths: str) -> pa.Table:
    return pa.Table.from_pylist([{"path": path} for path in paths], schema=SCHEMA)


def test_the_rows_of_a_node_are_one_file_in_the_order_of_their_leases() -> None:
    written = Written()
    rows = [("a", table("/in/2")), ("b", table("/in/3")), ("a", table("/in/1"))]

    Output(written, SPEC, "/out", 1).store(lambda: rows, 3)  # type: ignore[arg-type]

    files = {name: pq.read_table(io.BytesIO(content)) for name, content in written.items()}
    assert {name: found.column("path").to_pylist() for name, found in files.items()} == {
        "/staging/output-1/part-a.parquet": ["/in/2", "/in/1"],
        "/staging/output-1/part-b.parquet": ["/in/3"],
    }
    assert all(found.schema.equals(SCHEMA) for found in files.values())


def test_more_nodes_than_files_may_be_open_are_written_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_files, "MOST_OPEN", 2)
    written = Written()
    rows = [(node, table(f"/in/{lease}{node}")) for lease in range(2) for node in "abcde"]
    readings: list[int] = []

    def read_rows() -> list[tuple[str, pa.Table]]:
        readings.append(len(written))
        return rows

    Output(written, SPEC, "/out", 1).store(read_rows, 10)  # type: ignore[arg-type]

    assert readings == [0, 2, 4], "the rows are read no more often than needed"
    found = {name[-9]: pq.read_table(io.BytesIO(content)) for name, content in written.items()}
    assert {node: one.column("path").to_pylist() for node, one in found.items()} == {
        node: [f"/in/0{node}", f"/in/1{node}"] for node in "abcde"
    }


def test_what_waits_for_its_row_group_is_bounded_over_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(node, table(f"/in/{lease}{node}")) for lease in range(4) for node in "ab"]
    monkeypatch.setattr(part_files, "MOST_WAITING_BYTES", 3 * rows[0][1].nbytes)
    written = Written()

    Output(written, SPEC, "/out", 1).store(lambda: rows, 8)  # type: ignore[arg-type]

    groups = [pq.ParquetFile(io.BytesIO(content)).num_row_groups for content in written.values()]
    assert min(groups) > 1


def test_storing_300_000_rows_takes_little_memory(tmp_path: Path) -> None:
    played = [sys.executable, "-m", "tests.jobs.played_rows", str(tmp_path), "300000", "4"]

    said = subprocess.run(played, check=True, capture_output=True, text=True, cwd=ROOT).stdout

    grown = json.loads(said)
    assert grown["rows"] == 300_000
    assert grown["storing_mb"] < 70


@pytest.mark.parametrize(
    "rows",
    [
        {"a": ["/in/1"], "b": ["/in/3"]},
        {"a": ["/in/1", "/in/2"], "b": ["/in/3", "/in/2"]},
        {"a": ["/in/1", "/in/1"], "b": ["/in/3"]},
        {},
    ],
    ids=["one missing", "one too many", "one twice instead of another", "none"],
)
def test_anything_else_is_refused(rows: dict[str, list[str]]) -> None:
    tables = [(node, table(*paths)) for node, paths in rows.items()]

    with pytest.raises(JobError, match="nothing was stored"):
        Output(Written(), SPEC, "/out", 1).store(lambda: tables, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "files",
    [
        {"/out/part-a.parquet": b"PAR1"},
        {"/out/report.json": b'{"job_id": "application_1_0002"}'},
        {"/out/report.json": b"no json"},
        {"/out/report.json": b"[]"},
    ],
    ids=["no report", "another job's", "no json", "no object"],
)
def test_an_output_of_another_one_is_refused_with_the_remedy(files: dict[str, bytes]) -> None:
    with pytest.raises(JobError, match=r"/out exists already and is not of this job: .* another --output"):
        Output(Written(files), SPEC, "/out", 1).find_stored()  # type: ignore[arg-type]


def test_what_this_job_has_stored_is_its_report() -> None:
    job = SPEC.job_id
    report = JobReport(job, job, "e", "p", "c", 0, 0, "2026-01-02T03:04:05Z", 0, 0, 0, (), (), Weights("seeded"))
    files = Written({"/out/report.json": json.dumps(report.to_json()).encode()})

    assert Output(files, SPEC, "/out", 1).find_stored() == report  # type: ignore[arg-type]
    assert Output(Written(), SPEC, "/out", 1).find_stored() is None  # type: ignore[arg-type]


@pytest.mark.parametrize("site", [None, "<configuration/>", "<configuration>"])
def test_a_page_of_the_report_that_no_site_file_tells_of_has_no_address(tmp_path: Path, site: str | None) -> None:
    if site is not None:
        (tmp_path / "hdfs-site.xml").write_text(site)

    assert report_url(str(tmp_path), "/out") == ""
