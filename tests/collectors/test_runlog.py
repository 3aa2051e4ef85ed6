from __future__ import annotations

import logging
from pathlib import Path

import pytest

from collectors.agent.reports.runlog import KEPT_RUNS, STDERR_LIMIT, RunLog, clip
from infosvc.wire.answers import PastRun
from infosvc.wire.records import Outcome


def past(number: int, stderr: str = "") -> PastRun:
    return PastRun(float(number), Outcome.FAILED, 0.25, 1, None, stderr)


def test_the_last_runs_are_kept_newest_first_and_outlive_the_agent(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "log")
    for number in range(7 * KEPT_RUNS):
        log.add("a", past(number))
    log.add("b", past(1000))

    expected = [past(number) for number in reversed(range(6 * KEPT_RUNS, 7 * KEPT_RUNS))]
    assert log.runs("a") == expected
    assert RunLog(tmp_path / "log").runs("a") == expected
    assert log.runs("b") == [past(1000)]
    assert log.runs("never_run") == []


def test_a_log_does_not_grow_without_end_not_even_over_restarts(tmp_path: Path) -> None:
    for start in range(30):
        log = RunLog(tmp_path)
        for number in range(KEPT_RUNS):
            log.add("a", past(start * KEPT_RUNS + number, "x" * STDERR_LIMIT))

    assert (tmp_path / "a.jsonl").stat().st_size < 7 * KEPT_RUNS * (STDERR_LIMIT + 200)
    assert log.runs("a")[0].ended_at == 30 * KEPT_RUNS - 1
    assert len(log.runs("a")) == KEPT_RUNS


def test_the_logs_of_slots_that_are_gone_are_removed(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    for name in ("a", "b.c", "d"):
        log.add(name, past(1))
    log.keep_only({"b.c"})
    log.add("a", past(2))

    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.jsonl", "b.c.jsonl"]
    assert log.runs("a") == [past(2)]


def test_a_line_that_a_full_disk_cut_off_is_left_out(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.add("a", past(1))
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write('{"ended_at": 2, "outc\n[]\n')
    log.add("a", past(3))

    assert [run.ended_at for run in log.runs("a")] == [3.0, 1.0]


def test_a_log_that_cannot_be_written_is_said_once_and_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = RunLog(tmp_path)
    (tmp_path / "a.jsonl").mkdir()
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            log.add("a", past(number))

    assert caplog.text.count("cannot be written (Is a directory)") == 1
    assert log.runs("a") == []


def test_of_what_a_run_complains_the_end_is_kept() -> None:
    assert clip(b"\xff" + b"x" * STDERR_LIMIT + b"end") == "x" * (STDERR_LIMIT - 3) + "end"
