"""The bench of Kerberos and failover: how its figures follow from readings, its table, and the pair of services hit."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from bench.info.errors import BenchError
from bench.secure import files, masters, total
from bench.secure.__main__ import main
from bench.secure.costs import check_report
from bench.secure.figures import ASKED, VIEWS, WAYS
from bench.secure.masters import Progress
from bench.secure.pairs import longest_gap
from bench.secure.pieces import PIECES
from bench.secure.scene import MOST_FAILED, Place, Size, check_memory
from bench.secure.views import Answers
from hadoop.local.state import Cluster
from tests.command_lines import command_line

ROOT = Path(__file__).resolve().parents[2]
PAIR = {f"service_{fault}_{call}" for fault in ("killed", "frozen") for call in ("read", "write")}
SEEN = {f"views_{fault}_{view}" for fault in ("killed", "frozen") for view in ("agent", "plugin")}


def record(**readings: list[float]) -> dict[str, Any]:
    """A part with these readings."""
    return {
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"cores": 2, "cpu": "a CPU"},
        "versions": {"Hadoop": "3"},
        "load_before": 0.1,
        "steal_ratio": 0.0,
        "seed": 1,
        "part": [1, 4],
        "on": "local",
        "pieces": ["job"],
        "size": {"nodes": 2, "pictures": 200, "long_pictures": 2000, "files": 100_000},
        "seconds": 60.0,
        "readings": readings,
        "failed": {},
    }


def test_a_ratio_is_that_of_each_round_and_the_middle_one_counts() -> None:
    plain, kerberos = [10.0, 20.0, 30.0], [10.5, 24.0, 31.5]
    first = record(job_plain_whole=plain, job_kerberos_whole=kerberos, job_privacy_whole=[12.0, 24.0, 36.0])
    more = record(job_plain_whole=[40.0], job_kerberos_whole=[42.0], job_privacy_whole=[44.0])

    values = total.values([first, more])

    assert values["job_plain_whole"] == 25.0
    assert values["job_kerberos_whole_times"] == pytest.approx(1.05)
    assert values["job_privacy_whole_times"] == pytest.approx(1.2)
    missing = total.find_missing_goals([first, more])
    about = "job: classify job, its command from beginning to end, with Kerberos"
    assert f"not reached: {about} and privacy: times without: 1.20 x" in missing
    assert not [line for line in missing if line.startswith((f"not reached: {about}:", f"not measured: {about}"))]


def test_the_longest_of_all_failovers_counts() -> None:
    found = record(
        service_killed_read=[3.0, 5.1, 3.0],
        service_killed_write=[3.0, 4.9, 3.0],
        masters_none_pause=[40.0],
        masters_namenode_pause=[3.0, 19.0],
        masters_resourcemanager_pause=[20.5, 1.0],
    )

    missing = total.find_missing_goals([found])

    assert [line.partition(": longest time in which ")[2] for line in missing if line.startswith("not reached")] == [
        "no read was answered: 5.10 s",
        "a job has no new row: 20.5 s",
    ]


def test_nothing_measured_names_every_goal_and_every_view() -> None:
    missing = total.find_missing_goals([])

    goals = [one.figure for one in ASKED if one.is_goal]
    assert len(goals) == 2 + 2 + 4 + 2
    assert len(missing) == len(goals) + 4
    assert missing == [
        *(f"not measured: {goal.part}: {goal.text}" for goal in goals),
        *(f"not measured: {one.figure.part}: {one.figure.text}" for one in ASKED if one.figure.part == VIEWS),
    ]
    assert {one.figure.part for one in ASKED} == set(PIECES)
    assert len({one.figure.key for one in ASKED}) == len(ASKED)


def test_a_piece_that_failed_is_told_with_the_reason() -> None:
    part = record(listing_plain_whole=[9.0]) | {"failed": {"masters": "no memory"}}

    text = total.markdown([part], "HEAD")

    assert "- failed: masters: no memory" in text.splitlines()
    assert "| listing of all files, the program from beginning to end, without Kerberos |  | 9.00 s |" in text
    assert "100,000 files in a listing" in text


def test_the_longest_gap_is_one_that_ends_after_the_fault() -> None:
    assert longest_gap([0.0, 9.0, 9.5, 12.0, 12.5], since=9.2) == 2.5
    assert longest_gap([0.0, 9.0, 9.5], since=1.0) == 9.0, "it had begun before"
    with pytest.raises(BenchError, match="nothing was answered"):
        longest_gap([1.0, 2.0], since=2.0)


def test_an_answer_to_the_plug_in_is_news_once() -> None:
    answers = Answers(Cluster(Path("/nowhere"), "127.0.2", 1, "user", Path("/jars"), Path("/java")))

    assert answers.is_news(10.0, 100)
    assert not answers.is_news(10.5, 590), "the same one, asked for a little sooner"
    assert not answers.is_news(11.0, -1), "it has none any more"
    assert answers.is_news(13.0, 20)


def test_a_job_without_all_rows_measures_nothing() -> None:
    check_report({"images": 10, "errors": 0}, 10)
    for report in ({"images": 9, "errors": 0}, {"images": 10, "errors": 1}):
        with pytest.raises(BenchError, match="of 10 pictures"):
            check_report(report, 10)


def test_too_little_memory_is_told_before_anything_starts() -> None:
    with pytest.raises(BenchError, match=r"1000000\.0 GB are needed: end other programs"):
        check_memory(1e6)


def test_the_sum_of_kept_parts_is_told_as_json(tmp_path: Path) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    kept = record(service_killed_read=[3.5]) | {"commit": commit.stdout.strip()}
    (tmp_path / "secure-2026-01-01-000000.json").write_text(json.dumps(kept))

    done = CliRunner().invoke(main, ["--sum", "HEAD", "--json", "--output", str(tmp_path)])

    assert done.exit_code == 1
    assert json.loads(done.output)["values"] == {"service_killed_read": 3.5}


def test_a_piece_that_breaks_is_told_and_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(place: Place) -> None:
        place.found["job_plain_whole"] = [8.0]
        raise subprocess.TimeoutExpired("nodewise", 900.0)

    monkeypatch.setitem(PIECES, "job", break_off)
    monkeypatch.setitem(PIECES, "listing", lambda place: place.found.update(listing_plain_whole=[9.0]))

    done = CliRunner().invoke(main, ["--quick", "--only", "job", "--only", "listing", "--json"])

    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["failed"] == {"job": "TimeoutExpired: Command 'nodewise' timed out after 900.0 seconds"}
    assert told["readings"] == {"job_plain_whole": [8.0], "listing_plain_whole": [9.0]}, "what was found before, too"


def test_a_part_without_a_reading_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(_place: Place) -> None:
        raise BenchError("no memory")

    monkeypatch.setitem(PIECES, "job", break_off)

    done = CliRunner().invoke(main, ["--quick", "--only", "job", "--output", str(tmp_path)])

    assert done.exit_code == 1
    assert "- failed: job: BenchError: no memory" in done.output
    assert list(tmp_path.iterdir()) == [], "an earlier one with readings goes on to count"


def test_what_was_measured_before_it_was_ended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(place: Place) -> None:
        place.found["job_plain_whole"] = [8.0]
        sys.exit(143)  # as SIGTERM does

    monkeypatch.setitem(PIECES, "job", end)
    monkeypatch.setitem(PIECES, "listing", lambda place: place.found.update(listing_plain_whole=[9.0]))

    done = CliRunner().invoke(main, ["--quick", "--only", "job", "--only", "listing", "--json"])

    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["failed"] == {"job": "it was ended before all of it was measured"}
    assert told["readings"] == {"job_plain_whole": [8.0]}


def test_a_round_that_fails_costs_itself_alone_until_too_many_do(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, Size(), random.Random(1), None, lambda _: None)
    mended: list[int] = []

    def fail() -> dict[str, float]:
        raise ValueError("no JSON")

    place.measure("round 1", lambda: {"a": 1.0, "b": 2.0}, lambda: mended.append(1))
    place.measure("round 2", fail, lambda: mended.append(2))
    place.measure("round 3", lambda: {"a": 3.0, "b": 4.0}, lambda: mended.append(3))
    assert mended == [2]
    for number in range(4, 3 + MOST_FAILED - 1):
        place.measure(f"round {number}", fail, lambda: None)
    with pytest.raises(BenchError, match="given up"):
        place.measure("the last", fail, lambda: None)

    assert place.found == {"a": [1.0, 3.0], "b": [2.0, 4.0]}
    assert place.failed[0] == "round 2: ValueError: no JSON"
    assert len(place.failed) == MOST_FAILED


class Master(BaseHTTPRequestHandler):
    """An application master that tells how many rows there are."""

    done = 0

    def do_GET(self) -> None:
        """The status of its job."""
        body = json.dumps({"done": self.done}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def master_of(rows: int) -> Iterator[str]:
    """The address of an application master whose job has so many rows, until the end of the block."""

    class OneMaster(Master):
        done = rows

    with ThreadingHTTPServer(("127.0.0.1", 0), OneMaster) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def client() -> Iterator[subprocess.Popen[str]]:
    """Who follows a job that does not end by itself."""
    with subprocess.Popen(["/bin/sleep", "600"], text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_pause_goes_on_until_the_next_attempt_has_a_row(client: subprocess.Popen[str]) -> None:
    with ExitStack() as stack:
        addresses = [stack.enter_context(master_of(10))]
        progress = Progress(client, lambda: addresses[-1] if addresses else None)
        progress.watch(lambda: progress.done == 10)
        moment = time.monotonic()
        addresses.clear()
        stack.close()
        time.sleep(0.5)
        addresses.append(stack.enter_context(master_of(30)))
        progress.watch(lambda: progress.done == 30)

        assert longest_gap(progress.end(30), moment) >= 0.5


def test_rows_that_nobody_saw_came_at_the_end_of_the_job_at_the_latest(client: subprocess.Popen[str]) -> None:
    with master_of(10) as address:
        progress = Progress(client, lambda: address)
        progress.watch(lambda: progress.done == 10)
    moment = time.monotonic()
    client.kill()
    progress.watch(lambda: False)
    time.sleep(0.3)

    assert longest_gap(progress.end(30), moment) >= 0.3
    with pytest.raises(BenchError, match="nothing was answered"):
        longest_gap(progress.end(10), moment)


def test_a_job_that_does_not_end_is_given_up(client: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masters, "JOB_SECONDS", 0.2)
    with pytest.raises(BenchError, match="the job goes on after 0 s, with 0 rows"):
        Progress(client, lambda: None).watch(lambda: False)


def test_a_new_cluster_gets_the_hdfs_of_another_one_whole_or_not_at_all(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    kept = {"namenode/current/VERSION": "of names", "nodes/1/data/block": "one", "nodes/2/data/block": "two"}
    for name, text in {**kept, "nodes/1/local/file": "of YARN", "cluster.json": "{}"}.items():
        (home / "cluster" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "cluster" / name).write_text(text)
    broken_off = other / "cluster" / "nodes" / "1" / "data" / "half"
    broken_off.parent.mkdir(parents=True)
    broken_off.touch()

    assert files.copy_hdfs(home, other)
    folder = other / "cluster"
    assert {str(one.relative_to(folder)): one.read_text() for one in folder.rglob("*") if one.is_file()} == kept
    (folder / "nodes" / "1" / "data" / "block").write_text("its own")
    assert not files.copy_hdfs(home, other), "it has one by now"
    assert (folder / "nodes" / "1" / "data" / "block").read_text() == "its own"
    assert (home / "cluster" / "nodes" / "1" / "data" / "block").read_text() == "one"


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_three_clusters_list_the_same_files_which_were_made_once(tmp_path: Path) -> None:
    words = ["--quick", "--only", "listing", "--json", "--home", str(tmp_path / "home")]
    command = [sys.executable, "-m", "bench.secure", *words]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1700, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["failed"] == {}
    assert set(found["readings"]) == {f"listing_{way}_{phase}" for way in WAYS for phase in ("whole", "listed")}
    assert done.stderr.count("files were made in") == 1
    assert done.stderr.count("the files were copied to") == 2
    assert [one for one in psutil.process_iter() if str(tmp_path) in " ".join(command_line(one))] == []


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("piece", "keys"),
    [("service", PAIR), pytest.param("views", SEEN, marks=pytest.mark.cluster)],
    ids=["service", "views"],
)
def test_two_services_are_hit_and_nothing_is_left(tmp_path: Path, piece: str, keys: set[str]) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    words = ["--quick", "--only", piece, "--json", "--output", str(tmp_path / "results")]
    command = [sys.executable, "-m", "bench.secure", *words]

    environment = os.environ | {"TMPDIR": str(folder)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=800, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["failed"] == {} and set(found["readings"]) == keys
    # The claim of a service that does not renew it lasts for 2.5 s.
    assert all(1.5 < seconds[0] < 120.0 for seconds in found["readings"].values()), found["readings"]
    (kept,) = (tmp_path / "results").glob("secure-*.md")
    assert kept.read_text() == total.markdown([found], found["date"])
    assert list(folder.iterdir()) == []
    assert [one for one in psutil.process_iter() if str(folder) in " ".join(command_line(one))] == []
