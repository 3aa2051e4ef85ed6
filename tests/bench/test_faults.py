"""The bench of faults: what is drawn, and how a run is told. The faults themselves: tests/cluster/test_faults.py."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.faults import table, total
from bench.faults.__main__ import draw_faults
from bench.faults.faults import FAULTS
from bench.info.errors import BenchError
from bench.parts import Part, describe_commit, find_missing_parts, read_parts

RIGHT = {"number": 1, "faults": ["worker", "master"], "missed": [], "seconds": 9.0, "attempts": 2, "wrong": []}
WRONG = {
    "number": 2,
    "faults": ["node"],
    "missed": ["client"],
    "seconds": 9.0,
    "attempts": 1,
    "wrong": ["399 rows of 399 pictures"],
}


@pytest.mark.parametrize("count", [1, 11, 100])
def test_every_kind_comes_equally_often_up_to_three_in_a_job(count: int) -> None:
    jobs = draw_faults(count, 7, ())
    times = Counter(kind for job in jobs for kind in job)

    assert sum(times.values()) == count
    assert max(times.values()) - min(times[kind] for kind in FAULTS) <= 1
    assert {len(job) for job in jobs} <= {1, 2, 3}


def test_the_same_seed_draws_the_same_faults_and_another_one_others() -> None:
    assert draw_faults(100, 1, ()) == draw_faults(100, 1, ()) != draw_faults(100, 2, ())


def test_chosen_kinds_come_in_turns_one_in_a_job() -> None:
    assert draw_faults(3, 1, ("node", "master")) == [["node"], ["master"], ["node"]]


def test_the_table_names_the_jobs_that_went_wrong() -> None:
    record: dict[str, Any] = {
        "date": "2026-01-02T03:04:05+00:00",
        "seed": 1,
        "part": [1, 1],
        "pictures": 400,
        "machine": {"cores": 2, "cpu": "some"},
        "trials": [RIGHT, WRONG],
    }

    text = table.markdown(record)

    assert "1 of 2 jobs were right, 1 of them with more than one application master" in text
    assert "- job 2 (node): 399 rows of 399 pictures" in text
    assert "| 1 | 0 |" in next(line for line in text.splitlines() if line.startswith("| worker"))
    assert "| 1 | 1 |" in next(line for line in text.splitlines() if line.startswith("| node:"))


def test_parts_hold_every_job_once() -> None:
    jobs = draw_faults(100, 1, ())
    taken = [job for number in (1, 2, 3) for job in Part(number, 3).take(jobs)]

    assert sorted(taken) == sorted(jobs)


def test_the_sum_counts_the_newest_of_each_part_in_a_range_and_names_what_is_missing(tmp_path: Path) -> None:
    commit = describe_commit().removesuffix("-dirty")
    for name, part, known, trials in (
        ("1", [1, 3], commit, [WRONG]),
        ("2", [1, 3], commit, [RIGHT, RIGHT]),
        ("3", [3, 3], commit, [WRONG]),
        ("4", [2, 3], "0" * 40, [RIGHT]),
    ):
        record = {"seed": 1, "on": "local", "part": part, "commit": known, "trials": trials}
        (tmp_path / f"faults-2026-0{name}.json").write_text(json.dumps(record))

    records = read_parts(tmp_path, "faults", "HEAD")
    goals = total.find_missing_goals(records)
    text = total.markdown(records, "HEAD")

    assert find_missing_parts(records) == ["seed 1, local: 2/3"]
    assert total.count(records)["worker"].times == 2
    assert {"not measured: seed 1, local: 2/3", "5 of 1000 faults were done", "1 jobs went wrong"} <= set(goals)
    assert "partition: 0 of 30" in goals
    assert "- seed 1, part 3/3, job 2 (node): 399 rows of 399 pictures" in text


def test_a_range_that_git_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no-such-commit"):
        read_parts(tmp_path, "faults", "no-such-commit..HEAD")
