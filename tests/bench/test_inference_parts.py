"""The bench of pools and of Spark that is kept: courses of jobs, what follows from them, its goals, and a quick run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from bench.inference import pieces, total
from bench.inference.__main__ import main
from bench.inference.course import Stretch, find_busy, find_idle, follow_pieces, follow_report
from bench.inference.figures import ASKED, COLD, PHASES, POOL, key_of, name_kept
from bench.inference.pieces import PIECES, Place
from bench.inference.stays import STARTS, STAYS, middle
from bench.info.errors import BenchError
from bench.spark import SPARK_PYTHON
from tests.command_lines import command_line

ROOT = Path(__file__).resolve().parents[2]
NODES = ("a", "b")


def record(**readings: list[float]) -> dict[str, Any]:
    """A part with these readings."""
    return {
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"cores": 2, "cpu": "a CPU"},
        "versions": {"Spark": "4"},
        "load_before": 0.1,
        "steal_ratio": 0.0,
        "seed": 1,
        "part": [2, 12],
        "on": "local",
        "shape": "mxnet_alexnet, batch 8",
        "pieces": ["uneven-100"],
        "seconds": 600.0,
        "readings": readings,
        "failed": {},
    }


def course(way: str, wholes: list[float], **others: float) -> dict[str, list[float]]:
    """The readings of a way of 100 images on uneven nodes, which in each round took so long."""
    phases = {"began": 0.5, "first": 0.9, "last": 1.5, "idle": 0.25, "bound": 1.0} | others
    constant = {key_of("uneven", 100, way, phase): [value] * len(wholes) for phase, value in phases.items()}
    return constant | {key_of("uneven", 100, way, "whole"): wholes}


def find_missing(text: str, records: list[dict[str, Any]]) -> list[str]:
    """What is missing that has these words."""
    return [line for line in total.find_missing_goals(records) if text in line]


def test_the_course_of_a_job_begins_with_its_command_and_not_with_its_master() -> None:
    asked_at = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC).timestamp()
    report = {
        "started_at": "2026-01-01T12:00:02.500+00:00",
        "first_result_seconds": 1.0,
        "lower_bound_seconds": 3.0,
        "leases": [
            {"node_name": "a", "begin": 0.5, "end": 4.5, "images": 40, "outcome": "accepted"},
            {"node_name": "b", "begin": 0.5, "end": 2.5, "images": 10, "outcome": "accepted"},
            {"node_name": "b", "begin": 3.5, "end": 99.0, "images": 5, "outcome": "superseded"},
            {"node_name": "b", "begin": 4.5, "end": 99.0, "images": 5, "outcome": "expired"},
        ],
    }

    found = follow_report(report, asked_at, whole=8.0, nodes=NODES)

    assert (found.began, found.first, found.last, found.whole) == (2.5, 3.5, 7.0, 8.0)
    assert (found.idle, found.bound) == (1.0, 3.0)


def test_the_course_of_a_job_of_spark_begins_with_its_line() -> None:
    partitions = [
        {"node": "a", "started": 101.0, "first": 101.5, "ended": 103.0, "images": 20},
        {"node": "b", "started": 101.0, "first": 101.25, "ended": 102.0, "images": 5},
        {"node": "b", "started": 103.0, "first": 103.5, "ended": 104.0, "images": 5},
    ]

    found = follow_pieces(partitions, asked_at=100.0, committed_at=104.5, nodes=NODES)

    assert (found.began, found.first, found.last, found.whole) == (1.0, 1.25, 4.0, 4.5)
    assert (found.idle, found.bound) == (1.0, 30 / 15)
    with pytest.raises(BenchError, match="b are no nodes of this cluster"):
        follow_pieces(partitions, asked_at=100.0, committed_at=104.5, nodes=["a", "c"])


def test_leases_of_a_node_that_overlap_keep_it_busy_once() -> None:
    assert find_busy([Stretch("a", 4.0, 5.0, 1), Stretch("a", 0.0, 3.0, 1), Stretch("a", 1.0, 2.0, 1)]) == 4.0


def test_a_node_that_had_nothing_is_the_slowest_and_idle_all_the_time() -> None:
    assert find_idle([Stretch("a", 1.0, 5.0, 8)], NODES) == 4.0


def test_the_job_in_the_middle_is_told_with_all_of_its_phases() -> None:
    reports: list[dict[str, Any]] = [
        {
            "started_at": "1970-01-01T00:00:00+00:00",
            "first_result_seconds": whole / 2,
            "lower_bound_seconds": 1.0,
            "leases": [{"node_name": "a", "begin": 0.0, "end": whole, "images": 1, "outcome": "accepted"}],
        }
        for whole in (9.0, 3.0, 5.0)
    ]

    found = middle([follow_report(one, 0.0, one["leases"][0]["end"], NODES) for one in reports])

    assert set(found) == set(PHASES)
    assert (found["whole"], found["first"]) == (5.0, 2.5)


def test_spark_at_its_best_is_the_soonest_way_of_each_round() -> None:
    pool = course(POOL, [2.0, 2.0, 2.0])
    few = course(name_kept(12, False), [3.0, 9.0, 9.0], idle=1.0)
    many = course(name_kept(32, True), [9.0, 2.5, 2.8], idle=2.0)
    single = course(name_kept(32, False), [0.1])

    values = total.values([record(**pool, **few, **many, **single)])

    assert values["uneven_100_spark_best_times"] == 1.4, "a way that was not measured in each round does not count"
    assert values["uneven_100_spark_best_idle"] == 2.0
    assert values["uneven_100_spark_best_given"] == pytest.approx(2.8 / 1.5)
    assert values["uneven_100_pool_over"] == 1.0


def test_goals_are_reached_at_their_bounds_and_not_beyond() -> None:
    spark = course(name_kept(12, False), [2.73])
    cold = course("spark_cold", [20.0])
    good = record(**course(POOL, [2.1], first=1.0), **spark, **cold, **course(COLD, [10.0]))
    bad = record(**course(POOL, [2.11], first=1.01), **spark, **cold, **course(COLD, [10.1]))

    assert find_missing("not reached", [good]) == []
    assert [line.partition("uneven, 100")[2] for line in find_missing("not reached", [bad])] == [
        ": pool: until the first row: 1.01 s",
        ": pool: whole time less 1 s / bound: 1.11 x",
        ": whole time, Spark kept, at its best / pool: 1.29 x",
        ", cold: whole time, Spark / nodewise: 1.98 x",
    ]


def test_nothing_measured_names_every_goal_of_every_piece() -> None:
    missing = total.find_missing_goals([])

    # First row and whole time, and cold, for each of six; ahead of Spark on uneven nodes.
    assert len(missing) == 6 * 3 + 3
    assert {one.figure.part for one in ASKED if one.is_goal} == set(PIECES)
    assert len({one.figure.key for one in ASKED}) == len(ASKED)


def test_the_table_names_spark_at_its_best_first_and_where_the_time_goes() -> None:
    ceiling = {key_of("uneven", 100, "ceiling", "whole"): [1.25]}
    text = total.markdown([record(**course(POOL, [2.0]), **course(name_kept(32, False), [3.0]), **ceiling)], "HEAD")

    rows = text.partition("## Uneven nodes, 100 images")[2].splitlines()[4:]
    assert rows[0] == (
        "| Spark at its best: the soonest of the kept ones in each round | 0.50 | 0.90 | 1.50 | 3.00 | 0.25 | 1.00 |"
    )
    assert rows[1].startswith("| nodewise, in a pool | 0.50 | 0.90 | 1.50 | 2.00 |")
    assert rows[2].startswith("| Spark, session and engines kept, 32 partitions |")
    assert rows[3] == "| ceiling: decode + infer, images in memory, one process per core |  |  |  | 1.25 |  |  |"
    assert "## Even nodes" not in text
    assert "part 2/12, seed 1 (uneven-100)" in text and "mxnet_alexnet, batch 8. It took 10 minutes." in text


def test_a_part_is_the_piece_of_its_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def note(name: str) -> Callable[[Place], None]:
        return lambda place: place.found.update({name: [1.0]})

    for name in PIECES:
        monkeypatch.setitem(PIECES, name, note(name))

    options = ["--quick", "--json", "--output", str(tmp_path)]
    done = CliRunner().invoke(main, ["--part", f"2/{len(PIECES)}", *options])

    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["readings"] == {"uneven-100": [1.0]}
    (file,) = tmp_path.glob("inference-*.json")
    assert json.loads(file.read_text()) == found


def test_pieces_are_measured_by_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[Place] = []
    monkeypatch.setitem(PIECES, "even-100-cold", places.append)

    options = ["--only", "even-100-cold", "--no-spark", "--engine", "onnx_alexnet", "--rounds", "2", "--home", "/h"]
    done = CliRunner().invoke(main, options)

    assert done.exit_code == 0, done.output
    (place,) = places
    assert (place.engine, place.batch, place.rounds, place.has_spark) == ("onnx_alexnet", 8, 2, False)
    assert place.home == Path("/h/even-100"), "with the images of the piece that is warm"


def test_without_spark_nothing_is_started_in_vain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pieces, "SPARK_PYTHON", tmp_path / "python")

    done = CliRunner().invoke(main, ["--quick", "--only", "even-100", "--json"])

    assert done.exit_code == 1
    assert "run scripts/setup --bench, or give --no-spark" in json.loads(done.stdout)["failed"]["even-100"]


def run_quick(tmp_path: Path, *words: str) -> dict[str, Any]:
    """What is told of pieces on uneven nodes, of which nothing is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    chosen = ("--only", "uneven-100", "--only", "uneven-100-cold")
    command = [sys.executable, "-m", "bench.inference", "--quick", *chosen, "--json", *words]

    environment = os.environ | {"TMPDIR": str(folder)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1700, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    assert [one for one in psutil.process_iter() if str(folder) in " ".join(command_line(one))] == []
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["failed"] == {}
    return found


def keys_of(*ways: str) -> set[str]:
    return {key_of("uneven", 100, way, phase) for way in ways for phase in PHASES}


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_a_pool_and_a_job_of_its_own_are_measured_in_turns(tmp_path: Path) -> None:
    found = run_quick(tmp_path, "--no-spark")["readings"]

    assert set(found) == keys_of(POOL, COLD) | {"uneven_100_ceiling_whole"}
    for way in (POOL, COLD):
        began, first, last, whole = (found[key_of("uneven", 100, way, phase)][0] for phase in PHASES[:4])
        assert 0 < began <= first <= last <= whole
        assert 0 <= found[key_of("uneven", 100, way, "idle")][0] <= last - began
    assert found["uneven_100_pool_whole"][0] < found["uneven_100_cold_whole"][0]


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.cluster
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not SPARK_PYTHON.exists(), reason="scripts/setup --bench installs Spark")
def test_spark_is_measured_with_its_session_kept_and_with_one_of_its_own(tmp_path: Path) -> None:
    readings = run_quick(tmp_path)["readings"]

    sessions = [name_kept(slices, dynamic) for slices in (12, 32) for dynamic in (False, True)]
    assert set(readings) == keys_of(POOL, COLD, "spark_cold", *sessions) | {"uneven_100_ceiling_whole"}
    assert set(STAYS) | set(STARTS) >= {"spark_kept", "spark_dynamic", "spark_cold"}
    for way in sessions:
        began, first, last, whole = (readings[key_of("uneven", 100, way, phase)][0] for phase in PHASES[:4])
        assert 0 < began <= first <= last <= whole < readings[key_of("uneven", 100, "spark_cold", "whole")][0]
