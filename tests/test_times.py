"""The notes of several runs of tests are added up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.times import slowest

ROOT = Path(__file__).resolve().parents[1]
FIRST = """
import time, pytest

@pytest.fixture
def slow():
    time.sleep(0.3)

def test_one(slow): pass

def test_two(): assert False

@pytest.mark.skip(reason="no such program")
def test_three(): pass
"""


def run(file: Path, notes: Path) -> None:
    """Tests in a process of its own, with the plug-in of this checkout."""
    program = "import sys, pytest; from tests.times import Times; pytest.main(sys.argv[1:], plugins=[Times()])"
    words = [sys.executable, "-c", program, "-q", "-p", "no:cacheprovider", f"--rootdir={file.parent}", str(file)]
    environment = {**os.environ, "NODEWISE_TEST_TIMES": str(notes), "PYTHONPATH": str(ROOT)}
    subprocess.run(words, env=environment, cwd=file.parent, capture_output=True, check=True, timeout=120)


def noted(notes: Path) -> list[tuple[str, list[float]]]:
    """Each module, and what its set-ups, calls and tear-downs took."""
    found = [json.loads(file.read_text())["seconds"] for file in notes.iterdir()]
    return [(name, list(spent.values())) for seconds in found for name, spent in seconds.items()]


def test_runs_side_by_side_are_told_as_one(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_second.py").write_text("def test_four(): pass\n")
    run(tmp_path / "test_first.py", notes / "first.json")
    run(tmp_path / "test_second.py", notes / "second.json")

    done = subprocess.run(
        [sys.executable, "-m", "tests.times", str(notes)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    skipped, _, slowest, second, both, took, failed, last = done.stdout.splitlines()
    assert skipped == "SKIPPED [1] test_first.py: no such program"
    spent = {name: sum(seconds) for name, seconds in noted(notes)}
    assert [line.split()[-1] for line in (slowest, second)] == sorted(spent, key=lambda name: -spent[name])
    of_first = slowest if slowest.endswith("test_first.py") else second  # usually, but for a machine that pauses
    assert 0.3 <= float(of_first.split()[2]) <= float(both.split()[2]) < 60
    assert both.endswith("all 2 modules")
    assert re.fullmatch(r"The runs took first \d+ s, second \d+ s", took)
    assert failed == "FAILED test_first.py::test_two"
    assert last == "2 passed, 1 failed, 0 error, 1 skipped"
    assert set(json.loads((notes / "first.json").read_text())["outcomes"]) == {"passed", "failed", "error", "skipped"}


def test_the_ten_slowest_modules_are_told() -> None:
    run = {"seconds": {f"test_{number}.py": {"setup": 1.0, "call": float(number)} for number in range(12)}}

    told = slowest([run])

    assert [line.split()[-1] for line in told[1:-1]] == [f"test_{number}.py" for number in range(11, 1, -1)]
    assert told[-1].split() == ["78.0", "s", "12.0", "s", "all", "12", "modules"]
