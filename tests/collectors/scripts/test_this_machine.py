"""Every collector on this very machine, as a slot runs it; and the paper's own collector, which is an example."""

from __future__ import annotations

import math
import os
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "collectors" / "scripts"
FIXTURES = ROOT / "tests" / "fixtures"
EXAMPLE = ROOT / "examples" / "getCpuUsage.sh"
CATALOGUE = tomllib.loads((ROOT / "collectors" / "catalog.toml").read_text())["producer"]
EMITS = {name: row.get("emits", []) for name, row in CATALOGUE.items()}
TEXTS = {name for name, row in CATALOGUE.items() if not row["unit"]}
NAMES = sorted(path.stem for path in SCRIPTS.glob("[a-z]*.sh"))
DIFFERENCES = ["cpu_free_ratio", "cpu_usage", "disk_io", "network_io"]
ABSENT_IN_A_VIRTUAL_MACHINE = (
    "box_images",
    "disk_io",
    "disk_sequential",
    "driver_files",
    "driver_missing",
    "env_cached",
    "gpu_cards",
    "gpu_usage",
    "network",
    "pressure_stall",
    "temperature_celsius",
)
MEASURED_ANEW = ("disk_sequential", "disk_space", "temperature_celsius")
MAY_BE_PART = ("cpu_info", "disk_space", "gpu_usage", "machine_kind", "pressure_stall")

WORDS = ("driver_files", "machine_kind")
"""Bring no numbers."""

Collect = Callable[..., Any]


@pytest.mark.parametrize("name", NAMES)
def test_on_this_machine_a_collector_brings_finite_numbers_of_its_names(collect: Collect, name: str) -> None:
    deadline = time.monotonic() + 60
    run = collect(name, NVIDIA_SMI="nvidia-smi")
    while run.status == 3 and name in DIFFERENCES and time.monotonic() < deadline:
        run = collect(name)
    if run.is_no_data and name.startswith(ABSENT_IN_A_VIRTUAL_MACHINE):
        pytest.skip(f"this machine has nothing to measure: {run.stderr}")

    assert run.status == 0, run.stderr
    brought = run.values if EMITS[name] else {name: run.stdout}
    assert set(brought) <= set(EMITS[name] or [name])
    assert name.startswith(MAY_BE_PART) or len(brought) == len(EMITS[name] or [name])
    numbers = {each: float(value) for each, value in brought.items() if each not in TEXTS}
    assert numbers or name in WORDS
    assert all(math.isfinite(number) and number >= 0 for number in numbers.values())
    assert all(number <= 1 for each, number in numbers.items() if each.endswith("_ratio"))


@pytest.mark.parametrize("name", NAMES)
def test_a_collector_runs_from_descriptors_as_from_its_files(
    collect: Collect, execute: Collect, tmp_path: Path, name: str
) -> None:
    with (SCRIPTS / f"{name}.sh").open() as script, (SCRIPTS / "_lib.sh").open() as library:
        opened = (script.fileno(), library.fileno())
        run = execute(
            ["sh", f"/proc/self/fd/{opened[0]}"],
            opened,
            LIB=f"/proc/self/fd/{opened[1]}",
            PROC_ROOT=str(FIXTURES / "proc_before"),
            STATE_DIR=str(tmp_path),
        )

    from_file = collect(name, proc="before")
    assert (run.status, run.stderr) == (from_file.status, from_file.stderr)
    assert name.startswith(MEASURED_ANEW) or run.stdout == from_file.stdout


def test_a_process_pinned_to_one_cpu_counts_that_cpu_alone(collect: Collect) -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        pinned = collect("cpu_count").stdout
    finally:
        os.sched_setaffinity(0, allowed)

    assert (pinned, collect("cpu_count").stdout) == ("1\n", f"{len(allowed)}\n")


def test_a_pinned_process_sees_how_busy_its_own_cpu_is(collect: Collect) -> None:
    allowed = os.sched_getaffinity(0)
    cpu = max(allowed)
    burner = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        os.sched_setaffinity(burner.pid, {cpu})
        os.sched_setaffinity(0, {cpu})
        free = [1.0]
        deadline = time.monotonic() + 60
        # Ten ticks at least between samples, which the collector's own work on this CPU takes.
        while free[-1] > 0.1 and time.monotonic() < deadline:
            run = collect("cpu_free_ratio")
            free.append(float(run.stdout or 1))
    finally:
        os.sched_setaffinity(0, allowed)
        burner.kill()
        burner.wait()

    assert free[-1] <= 0.1


def usage(execute: Collect, proc: str, state: Path | None) -> Any:
    kept = {} if state is None else {"STATE_DIR": str(state)}
    return execute([str(EXAMPLE)], PROC_ROOT=str(FIXTURES / f"proc_{proc}"), **kept)


def test_the_paper_s_collector_prints_the_usage_since_boot_then_since_its_last_run(
    execute: Collect, tmp_path: Path
) -> None:
    # before: 2400 of 3200 ticks free; after: 150 of 500 more, guest time counted once.
    assert usage(execute, "before", tmp_path).stdout == "0.2500\n"
    assert usage(execute, "after", tmp_path).stdout == "0.7000\n"
    assert usage(execute, "before", None).stdout == "0.2500\n"


def test_the_paper_s_collector_has_no_data_after_a_restart(execute: Collect, tmp_path: Path) -> None:
    usage(execute, "after", tmp_path)

    assert (usage(execute, "restarted", tmp_path).stdout, usage(execute, "restarted", tmp_path).status) == ("", 3)
