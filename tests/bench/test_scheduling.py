"""The bench of the scheduler in small: both policies place containers in both ways, and the ratios are judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.info.errors import BenchError
from bench.scheduling.load import Size, run
from bench.scheduling.table import ROWS, markdown, rows

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.usefixtures("only_when_long")
@pytest.mark.timeout(1800)
def test_both_policies_are_measured_in_both_ways(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.scheduling", "--quick", "--json", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {figure["name"]: figure for figure in json.loads(done.stdout)["figures"]}

    assert list(found) == [row.figure.key for row in ROWS]
    for name in ("heartbeats_per_second", "threads_per_second", "refresh_p50_seconds"):
        assert found[name]["plugin"] > 0 and found[name]["stock"] > 0, name
    assert found["refresh_loaded_seconds"]["plugin"] > 0
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".md"]


def test_a_load_test_that_cannot_run_fails_the_bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("bench.scheduling.load._class_path", lambda place: str(tmp_path))
    monkeypatch.setattr("bench.scheduling.load.PLUGIN", tmp_path)

    with pytest.raises(BenchError, match=r"the load test failed: (?s:.*)SchedulingLoad"):
        run(Size(nodes=10, warm_ups=0, rounds=1, seconds=0.1))


def trial(number: int, plugin: bool, asynchronous: bool, containers: int) -> dict[str, Any]:
    refreshes = [] if asynchronous else [4_000_000, 2_000_000, 9_000_000]
    found: dict[str, Any] = {"containers": containers, "seconds": 2.0, "cpuSeconds": 1.0, "idleTurns": 0.0}
    found |= {"refreshNanos": refreshes, "refreshNanosUnderLoad": refreshes if plugin else []}
    return {"round": number, "plugin": plugin, "asynchronous": asynchronous, "found": found}


def test_the_ratio_is_that_of_the_pairs_and_is_judged() -> None:
    placed = {False: ([950, 1000, 2100], [1000, 2000, 2000]), True: ([100, 100, 100], [110, 100, 90])}
    trials = [
        trial(number, plugin, asynchronous, containers)
        for asynchronous, both in placed.items()
        for plugin, rounds in zip((True, False), both, strict=True)
        for number, containers in enumerate(rounds)
    ]

    table = {row["name"]: row for row in rows(trials)}

    heartbeats, threads = table["heartbeats_per_second"], table["threads_per_second"]
    assert (heartbeats["plugin"], heartbeats["stock"], heartbeats["ratio"], heartbeats["met"]) == (
        500,
        1000,
        0.95,
        True,
    )
    assert (threads["ratio"], threads["met"]) == (1.0, True)
    assert (table["refresh_p50_seconds"]["plugin"], table["refresh_p50_seconds"]["met"]) == (0.004, True)
    assert (table["refresh_p99_seconds"]["plugin"], table["refresh_loaded_seconds"]["stock"]) == (0.009, None)
    text = markdown(
        {
            "date": "2020-01-01",
            "machine": {"cores": 2, "cpu": "c", "memory_bytes": 2**30, "system": "s"},
            "versions": {"Hadoop": "3"},
            "load_before": 0.0,
            "steal_ratio": 0.0,
            "idle_ratio": 0.0,
            "size": {"nodes": 1000, "warm_ups": 1, "rounds": 3, "seconds": 4.0},
            "figures": rows(trials),
        }
    )
    assert "| placed by heartbeats | >= 95% of stock | 1,000 /s | 500 /s | 95.0% | 50.0% to 105.0% | yes |" in text


def test_less_than_the_target_is_not_reached() -> None:
    trials = [
        trial(0, plugin, asynchronous, 90 + 10 * (not plugin))
        for plugin in (True, False)
        for asynchronous in (True, False)
    ]

    table = {row["name"]: row for row in rows(trials)}

    assert (table["threads_per_second"]["ratio"], table["threads_per_second"]["met"]) == (0.9, False)
