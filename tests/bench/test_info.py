"""The bench itself, in small: its programs start, work beside each other and end, and every figure gets a value."""

from __future__ import annotations

import json
import multiprocessing
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.info.errors import BenchError
from bench.info.figures import FIGURES, Figure, quantile
from bench.info.prometheus import first_nodes, pages
from bench.info.scale import QUICK
from bench.info.simulate import sending
from bench.info.table import Row, rows
from bench.info.wire import Address, Line, request
from bench.kept import keep

pytestmark = pytest.mark.timeout(1800)  # a quick run takes minutes on a busy machine

ROOT = Path(__file__).resolve().parents[2]


def environment(place: Path) -> dict[str, str]:
    """Everything that the bench writes for a while goes to a folder of the test."""
    return {"PATH": "/usr/bin:/bin", "TMPDIR": str(place)}


def at_work(place: Path) -> list[list[str]]:
    """The commands of all processes that were given a path in this folder."""
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return [words for words in commands if any(str(place) in word for word in words)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One quick run: where it worked and kept its results, and what it printed."""
    place = tmp_path_factory.mktemp("bench")
    command = [sys.executable, "-m", "bench.info", "--quick", "--json", "--output", str(place / "results")]
    done = subprocess.run(command, cwd=ROOT, env=environment(place), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place, json.loads(done.stdout)


@pytest.mark.usefixtures("only_when_long")
def test_every_figure_of_nodewise_is_measured(run: tuple[Path, dict[str, Any]]) -> None:
    found = {figure["name"]: figure["nodewise"] for figure in run[1]["figures"]}

    assert set(found) == {figure.key for figure in FIGURES}
    assert [name for name, value in found.items() if value is None] == []
    assert found["ingest_durable"] > 0
    assert found["restart_sqlite_seconds"] > 0
    assert found["large_read_p99_seconds"] > 0
    assert found["large_growth"] == pytest.approx(found["large_cores"] / 100 / (found["small_cores"] / 20))
    assert 0 < found["read_p50_seconds"] <= found["read_p99_seconds"]
    assert 0 < found["visible_p50_seconds"] <= found["visible_p99_seconds"]


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.skipif(not shutil.which("prometheus"), reason="Debian's prometheus is not installed")
def test_prometheus_is_measured_beside_it(run: tuple[Path, dict[str, Any]]) -> None:
    found = {figure["name"]: figure for figure in run[1]["figures"]}

    for name in ("read_p50_seconds", "reads_per_second", "server_rss_bytes", "visible_p99_seconds"):
        assert found[name]["prometheus"] > 0
        assert found[name]["ratio"] == pytest.approx(found[name]["nodewise"] / found[name]["prometheus"])


@pytest.mark.usefixtures("only_when_long")
def test_machine_versions_date_and_stolen_time_are_kept_beside_the_table(run: tuple[Path, dict[str, Any]]) -> None:
    place, record = run
    kept = sorted((place / "results").iterdir())

    moment = datetime.fromisoformat(record["date"]).strftime("%Y-%m-%d-%H%M%S")
    assert [file.name for file in kept] == [f"info-{moment}.json", f"info-{moment}.md"]
    assert json.loads(kept[0].read_text()) == record
    assert record["machine"]["cores"] >= 1
    assert {"nodewise", "Python", "SQLite", "MariaDB"} <= set(record["versions"])
    assert 0 <= record["steal_ratio"] <= 1
    assert all(figure.text in kept[1].read_text() for figure in FIGURES)


@pytest.mark.usefixtures("only_when_long")
def test_nothing_is_left_behind(run: tuple[Path, dict[str, Any]]) -> None:
    place, _ = run

    assert [file.name for file in place.iterdir()] == ["results"]
    assert at_work(place) == []


@pytest.mark.usefixtures("only_when_long")
def test_a_bench_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.info", "--quick", "--only", "ingest", "--rounds", "50"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(tmp_path), stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 600
        # The last of the programs that the bench starts.
        while not any("on-mariadb" in word for words in at_work(tmp_path) for word in words):
            assert time.monotonic() < deadline, "the bench started nothing"
            time.sleep(0.02)
        process.terminate()
        assert process.wait(400) == 143

    assert list(tmp_path.iterdir()) == []
    assert at_work(tmp_path) == []


def test_a_part_that_does_not_exist_is_named_with_those_that_do() -> None:
    command = [sys.executable, "-m", "bench.info", "--only", "read,speed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "'speed'" in done.stderr
    assert "visible" in done.stderr


class Overloaded(BaseHTTPRequestHandler):
    """A service that takes no report."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(503)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"full")

    def do_GET(self) -> None:
        """An answer in chunks, the last of which comes alone."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in (b"5\r\nfirst\r\n", b"a\r\n and later\r\n", b"0\r\n\r\n"):
            self.wfile.write(chunk)
            self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def overloaded() -> Iterator[Address]:
    """Where it listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Overloaded) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield ("127.0.0.1", server.server_address[1])
        server.shutdown()
        thread.join()


def test_a_service_that_refuses_reports_ends_the_bench_with_its_answer(overloaded: Address) -> None:
    with (
        pytest.raises(BenchError, match="503"),
        sending(overloaded, dict.fromkeys(QUICK.node_names, "token"), QUICK, QUICK.node_names),
    ):
        deadline = time.monotonic() + 120
        while multiprocessing.active_children():
            assert time.monotonic() < deadline, "the simulated nodes went on"
            time.sleep(0.02)


def test_an_answer_in_chunks_is_read_whole(overloaded: Address) -> None:
    line = Line(overloaded)

    assert line.ask(request("GET", "/")) == b"first and later"
    line.close()


def test_a_row_shows_the_median_of_its_rounds_and_whether_it_is_enough() -> None:
    figure = Figure("f", "read", "f", most=2.0)

    row = Row(figure, [9.0, 1.0, 2.0], [4.0])

    assert (row.nodewise, row.ratio, row.is_met) == (2.0, 0.5, True)
    assert Row(figure, [9.0, 3.0, 2.0], []).is_met is False
    assert Row(Figure("f", "read", "f", least=2.0), [1.9], []).is_met is False
    assert Row(figure, [], []).is_met is None


def test_only_parts_that_were_measured_have_rows() -> None:
    found = rows([{"ingest_fast": 1.0}, {"ingest_fast": 3.0}], [], ["ingest"])

    assert [row.figure.part for row in found] == ["ingest"] * 3
    assert found[0].ours == [1.0, 3.0]


def test_a_second_run_on_the_same_day_is_kept_beside_the_first(tmp_path: Path) -> None:
    kept = [keep(tmp_path, "info", {"date": f"2026-01-02T03:04:{second}+00:00"}, "text") for second in ("05", "06")]

    assert [file.name for file in kept] == ["info-2026-01-02-030405.md", "info-2026-01-02-030406.md"]
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("nodes", [50, 53, 54])
def test_every_node_is_on_one_page_also_where_their_number_does_not_divide(nodes: int) -> None:
    scale = replace(QUICK, nodes=nodes, names=1)
    found = [re.findall(r'node="(\w+)"', page.decode()) for page in pages(scale)]

    assert len(found) == scale.pages
    assert sorted(node for page in found for node in page) == scale.node_names
    assert [page[0] for page in found] == first_nodes(scale)
    assert max(map(len, found)) - min(map(len, found)) <= 1


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_a_quantile_is_one_of_the_values(share: float, expected: int) -> None:
    assert quantile([float(number) for number in range(100, 0, -1)], share) == expected
