"""The bench of tasks: one quick run of all parts on a real cluster, and its table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.tasks import table
from bench.tasks.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.timeout(1800)
def test_a_quick_run_measures_every_figure_and_keeps_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.tasks", "--quick", "--json", "--output", str(tmp_path / "results")]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1700, check=False)

    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads(done.stdout)
    found = {row["name"]: row["found"] for row in record["figures"]}
    assert list(found) == [figure.key for figure in table.FIGURES]
    nothing = {"lines_lost", "lines_doubled", "tasks_never", "tasks_twice", "tasks_not_succeeded"}
    assert {name for name, value in found.items() if value == 0} - {"kills_between"} == nothing
    (kept,) = (tmp_path / "results").glob("tasks-*.md")
    assert kept.read_text() == table.markdown(record)


def test_what_is_reached_is_told_from_what_is_not() -> None:
    rows = table.rows(
        [{"start_process_seconds": 4.0, "box_ratio": 0.9}, {"start_process_seconds": 6.0, "box_ratio": 0.99}]
    )

    assert [(row["name"], row["found"], row["met"]) for row in rows] == [
        ("start_process_seconds", 5.0, True),
        ("box_ratio", pytest.approx(0.945), False),
    ]


def test_a_part_that_there_is_not_is_refused() -> None:
    refused = CliRunner().invoke(main, ["--only", "start,speed"])

    assert refused.exit_code == 2
    assert "there is no part 'speed': choose among start, lines, box, kills" in refused.output
