"""The bench of faults while tasks run: what counts as right, and how parts are told. The run itself is by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import CliRunner

from bench.task_faults import table
from bench.task_faults.__main__ import main
from bench.task_faults.faults import FAULTS
from bench.task_faults.trial import _is_whole
from bench.task_faults.watched import MARK, PROGRAM, Line, find_programs


def record(*wrong: str, lost: Sequence[tuple[str, float]] = (), of: int = 1) -> dict[str, Any]:
    """A part with one trial for each kind of fault."""
    outcomes = [
        {"number": number, "faults": [kind], "missed": [], "strays": 0, "doubled": 0, "starts": 5, "seconds": 40.0}
        for number, kind in enumerate(FAULTS, 1)
    ]
    more: dict[str, Any] = {"wrong": [], "lost_seconds": []}
    trials = [one | more for one in outcomes]
    trials[0] |= {"wrong": list(wrong), "lost_seconds": list(lost)}
    return {"seed": 1, "part": [1, of], "on": "local", "commit": "c", "trials": trials}


def test_what_was_not_measured_or_came_out_wrong_is_named() -> None:
    found = table.find_missing_goals([record("t went on after runner", lost=[("node", 2.5), ("node", 1.0)], of=2)])

    assert "not measured: seed 1, local: 2/2" in found
    assert f"{len(FAULTS)} of 100 faults were done" in found
    assert f"runner: 1 of {table.OF_EACH}" in found
    assert "1 trials went wrong" in found
    assert "1 starts lost more than 2 s of log" in found


def test_each_kind_has_a_line_and_so_has_each_trial_that_went_wrong() -> None:
    said = table.markdown([record("t went on after runner", lost=[("runner", 0.25)])], "HEAD")

    assert "| runner: The runner of a task is killed. | 1 | 1 | 1 | 0.2 |" in said
    assert "| node: All of a node is killed: NodeManager, DataNode, runners and boxes. | 1 | 0 | 0 |  |" in said
    assert "- seed 1, part 1/1, trial 1 (runner): t went on after runner" in said


@pytest.mark.parametrize(("numbers", "whole"), [([0, 1, 2], True), ([], True), ([0, 2], False), ([0, 1, 1], False)])
def test_a_log_with_a_gap_or_a_line_twice_is_not_whole(numbers: list[int], whole: bool) -> None:
    assert _is_whole([Line(number, 1.0) for number in numbers]) is whole


def test_programs_that_run_are_found_with_their_tasks(tmp_path: Any) -> None:
    """A pipe in the place of its output keeps the program until that is read, however long it is looked for."""
    os.mkfifo(tmp_path / "result")
    variables = {**os.environ, "TASK_ID": "task_of_this_test", "OUTPUT": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, MARK, "1"], env=variables, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout and program.stdout.readline().startswith("0 ")
        assert find_programs()[program.pid] == "task_of_this_test"
        left = (tmp_path / "result").read_text()
        printed = 1 + len(program.stdout.readlines())

    assert left == str(printed)
    assert program.pid not in find_programs()


def test_a_sum_of_nothing_names_the_goals(tmp_path: Any) -> None:
    said = CliRunner().invoke(main, ["--sum", "HEAD", "--output", str(tmp_path)])

    assert said.exit_code == 1
    assert "0 of 100 faults were done" in said.output
