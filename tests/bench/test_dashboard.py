"""The bench of the dashboard in small: a real service, a real browser, every figure, nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.dashboard.browser import look
from bench.dashboard.table import FIGURES, rows
from bench.info.errors import BenchError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.usefixtures("only_when_long")
def test_every_figure_is_measured(tmp_path: Path) -> None:
    words = ["--quick", "--nodes", "20", "--json", "--output", str(tmp_path / "results")]
    done = subprocess.run(
        [sys.executable, "-m", "bench.dashboard", *words],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    found = {figure["name"]: figure["nodewise"] for figure in record["figures"]}

    assert set(found) == {figure.key for figure in FIGURES}
    assert min(found[name] for name in ("first_paint_seconds", "complete_seconds", "script_seconds", "heap_bytes")) > 0
    assert record["size"]["nodes"] == 20
    assert not list(tmp_path.glob("bench-dashboard-*"))
    assert sorted(path.suffix for path in (tmp_path / "results").iterdir()) == [".json", ".md"]


def test_a_service_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(BenchError, match="did not show 5 nodes"):
        look("http://127.0.0.1:1", 5, 0.1)


def test_the_median_of_the_rounds_is_judged() -> None:
    slow, fast = ({figure.key: seconds for figure in FIGURES} for seconds in (1.5, 0.5))

    table = {row["name"]: row for row in rows([slow, fast, slow, fast, fast])}

    assert (table["complete_seconds"]["nodewise"], table["complete_seconds"]["met"]) == (0.5, True)
    assert table["heap_bytes"]["met"] is None
    assert not {row["name"]: row for row in rows([slow])}["first_paint_seconds"]["met"]
