"""The bench of the planner, in small: every method gets every figure, and what it reports is what happened."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bench.info.errors import BenchError
from bench.info.figures import Figure
from bench.placement import planning
from bench.placement.figures import figures
from bench.placement.instances import KINDS, Instance, invent
from bench.placement.methods import GREEDY, METHODS, OURS, PLANNERS, PULL
from bench.placement.parts import Found, times
from bench.placement.scale import FULL, QUICK, Scale
from bench.placement.table import Row, markdown, rows
from locality.simulation.invented import Fault
from locality.types import Terms

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One quick run: where it kept its results, and what it printed."""
    place = tmp_path_factory.mktemp("bench")
    command = [sys.executable, "-m", "bench.placement", "--quick", "--json", "--output", str(place)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place, json.loads(done.stdout)


def values(record: dict[str, Any], name: str) -> dict[str, list[float | None]]:
    found: dict[str, list[float | None]] = next(f["values"] for f in record["figures"] if f["name"] == name)
    return found


@pytest.mark.usefixtures("only_when_long")
def test_every_figure_is_measured_for_every_method_that_can_have_it(run: tuple[Path, dict[str, Any]]) -> None:
    _, record = run

    assert [figure["name"] for figure in record["figures"]] == [figure.key for figure in figures(QUICK)]
    assert set(values(record, "stealing_slower")) == set(METHODS)
    for name in ("over_uniform", "local_skewed", "uniform_4x400_seconds", "skewed_4x400_peak_bytes"):
        assert set(values(record, name)) == set(PLANNERS), name
        assert all(values(record, name).values()), name


@pytest.mark.usefixtures("only_when_long")
def test_ratios_keep_what_a_bound_promises(run: tuple[Path, dict[str, Any]]) -> None:
    _, record = run

    for name in ("stealing_none", "stealing_slower", "stealing_lost", "alone_slower"):
        assert all(ratio is not None and ratio >= 1 for found in values(record, name).values() for ratio in found)
    assert values(record, "alone_lost")["algorithm1"] == [None], "a plan alone does not survive a loss"
    (alone,), (stealing,) = values(record, "alone_slower")[OURS], values(record, "stealing_slower")[OURS]
    assert alone is not None and stealing is not None
    assert stealing < alone


@pytest.mark.usefixtures("only_when_long")
def test_time_and_memory_are_those_of_a_process(run: tuple[Path, dict[str, Any]]) -> None:
    _, record = run

    for method in PLANNERS:
        (seconds,), (peak,), (before,) = (
            values(record, f"uniform_4x400_{what}")[method] for what in ("seconds", "peak_bytes", "input_bytes")
        )
        assert seconds is not None and seconds > 0
        assert peak is not None and before is not None
        assert 10e6 < before <= peak


@pytest.mark.usefixtures("only_when_long")
def test_the_table_and_the_record_are_kept_with_machine_and_date(run: tuple[Path, dict[str, Any]]) -> None:
    place, record = run
    kept = sorted(place.iterdir())

    moment = datetime.fromisoformat(record["date"]).strftime("%Y-%m-%d-%H%M%S")
    assert [file.name for file in kept] == [f"placement-{moment}.json", f"placement-{moment}.md"]
    assert json.loads(kept[0].read_text()) == record
    assert record["machine"]["cores"] >= 1
    assert all(figure.text in kept[1].read_text() for figure in figures(QUICK))
    assert all(method in kept[1].read_text() for method in METHODS)


def test_a_part_that_does_not_exist_is_named_with_those_that_do() -> None:
    command = [sys.executable, "-m", "bench.placement", "--only", "time,speed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "'speed'" in done.stderr
    assert "makespan" in done.stderr


def test_a_plan_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LIMIT_SECONDS", 1e-5)

    with pytest.raises(BenchError, match="took more than 1e-05 s"):
        planning.measure("maxflow", "uniform", 4, 400)


def test_making_the_input_does_not_count_as_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []

    def invented(*_: object, **__: object) -> Instance:
        happened.append("input")
        return Instance([], {}, Terms())

    def planned(*_: object) -> float:
        happened.append("plan")
        return 2.0

    monkeypatch.setattr(planning, "invent", invented)
    monkeypatch.setattr(planning, "_seconds", planned)
    monkeypatch.setattr("signal.setitimer", lambda _, seconds: happened.append(f"alarm in {seconds:g} s"))

    planning.main("even", "uniform", 4, 400, 500.0)

    assert happened == ["input", "alarm in 500 s", "plan", "alarm in 0 s"]


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(BenchError, match=r"failed: (?s:.*)KeyError: 'nothing'"):
        planning.measure("nothing", "uniform", 4, 400)


def test_a_process_that_is_killed_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))

    with pytest.raises(BenchError, match="was killed by SIGKILL"):
        planning.measure("even", "uniform", 4, 400)


def test_what_does_not_end_is_not_tried_again_and_loses_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def measured(method: str, *_: object) -> dict[str, float]:
        asked.append(method)
        if method == GREEDY:
            raise BenchError("was killed by SIGKILL")
        return {"seconds": 1.0}

    monkeypatch.setattr(planning, "measure", measured)
    found, scale = Found(), Scale(sizes=((4, 400), (5, 100_001)), hard=(), rounds=2)

    times(scale, lambda _: None, found)

    assert asked.count(GREEDY) == 2
    assert found.values["even"] == {f"uniform_{size}_seconds": [1.0, 1.0] for size in ("4x400", "5x100001")}
    assert found.values["min_cost"] == {"uniform_4x400_seconds": [1.0, 1.0]}
    assert found.left_out == [
        f"planning 4 nodes x 400 blocks, uniform: {GREEDY} was killed by SIGKILL",
        "planning 5 nodes x 100,001 blocks, uniform: min_cost is left out above 100,000 blocks",
        f"planning 5 nodes x 100,001 blocks, uniform: {GREEDY} was killed by SIGKILL",
    ]


HELD = """
import time
from bench.placement import parts
from bench.placement.__main__ import main

invent = parts.invented.invent

def invent_until_told_to_end(seed, shape):
    while shape.fault is parts.Fault.SLOWER:
        time.sleep(0.1)
    return invent(seed, shape)

parts.invented.invent = invent_until_told_to_end
main()
"""
"""The bench, which comes no farther than to its second fault, however late it is told to end."""


def test_a_run_that_is_stopped_keeps_what_it_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HELD, "--only", "makespan,bytes", "--output", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if Fault.SLOWER.value in line:
                running.terminate()
    (kept,) = tmp_path.glob("*.json")
    record = json.loads(kept.read_text())

    assert running.returncode == 143
    assert set(values(record, "stealing_none")) == set(METHODS)
    assert values(record, "stealing_lost") == {}
    assert "makespan: stopped before its end" in record["left_out"][0]
    assert "- makespan: stopped before its end" in kept.with_suffix(".md").read_text()


def test_what_must_be_reached_is_asked_of_the_full_bench() -> None:
    asked = {figure.key: (figure.most, figure.least) for figure in figures(FULL)}

    assert asked["stealing_slower"] == (1.05, None)
    assert asked["over_uniform"] == asked["over_skewed"] == (1.05, None)
    assert asked["local_uniform"] == (None, 0.98)
    assert [asked[f"uniform_{size}_seconds"][0] for size in ("4x400", "1000x100000", "10000x1000000")] == [0.01, 0.5, 6]
    assert asked["uniform_10000x1000000_peak_bytes"] == (1e9, None)


def test_our_policy_is_the_one_that_must_reach_the_figures() -> None:
    figure = Figure("f", "bytes", "f", most=1.05)

    assert Row(figure, {OURS: [1.0, 1.04, 2.0], "even": [9.0]}).is_met is True
    assert Row(figure, {OURS: [1.0, 1.06, 2.0], "even": [1.0]}).is_met is False
    assert Row(figure, {"even": [1.0]}).is_met is None


def test_what_never_ends_is_shown_as_such() -> None:
    machine = {"machine": {"cores": 1, "cpu": "c", "memory_bytes": 2**30, "system": "s"}}
    record = machine | {
        "date": "d",
        "versions": {"nodewise": "0", "Python": "3"},
        "steal_ratio": 0.0,
        "load_before": 0.0,
        "left_out": [],
    }
    found = rows(Found({PULL: {"alone_lost": [1.5]}, "even": {"alone_lost": [math.inf]}}), ["makespan"], QUICK)

    text = markdown(record, found, QUICK)

    assert "| never ends |" in text
    assert "| 1.50 |" in text


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_replicas_lie_as_hdfs_places_them(kind: str) -> None:
    instance = invent(KINDS[kind], 100, 500, seed=1)
    rack = instance.terms.cost.rack

    assert len({block.name for block in instance.blocks}) == 500
    for block in instance.blocks:
        first, *others = block.replicas
        assert len(set(block.replicas)) == 3
        assert len({rack(node) for node in others}) == 1
        assert rack(first) not in {rack(node) for node in others}
    assert invent(KINDS[kind], 100, 500, seed=1) == instance


def test_a_tenth_of_the_nodes_holds_half_of_a_skewed_instance() -> None:
    holders = Counter(block.replicas[0] for block in invent(KINDS["skewed"], 100, 4000, seed=1).blocks)

    assert sum(count for _, count in holders.most_common(10)) > 0.5 * 4000


@pytest.mark.parametrize("nodes", [3, 4, 45])
def test_racks_of_any_size_have_room_for_replicas(nodes: int) -> None:
    assert all(len(set(b.replicas)) == len(b.replicas) >= 2 for b in invent(KINDS["uniform"], nodes, 50, seed=1).blocks)
