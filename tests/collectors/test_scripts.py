"""The real collectors under sh, on fixtures whose values were computed by hand, and on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

Collect = Callable[..., "subprocess.CompletedProcess[str]"]

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "collectors" / "scripts"
FIXTURES = ROOT / "tests" / "fixtures"
NAMES = sorted(path.stem for path in SCRIPTS.glob("[a-z]*.sh"))
DIFFERENCES = ("cpu_free_ratio", *(name for name in NAMES if name.endswith("_per_second")))


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("cpu_count.sh", "2"),  # cpu10 is not in the allowed list 0-1
        ("load_1m.sh", "1.25"),
        ("memory_available_bytes.sh", "2097152"),  # 2048 kB
    ],
)
def test_an_instant_value_is_read_from_proc(collect: Collect, script: str, value: str) -> None:
    run = collect(script, proc="before")

    assert (run.stdout, run.returncode) == (f"{value}\n", 0), run.stderr


@pytest.mark.parametrize(
    ("script", "value"),
    [
        # cpu0: 150 of 200 ticks free, guest time counted once; cpu1: 0 of 200; cpu10 may not be used.
        ("cpu_free_ratio.sh", "0.3750"),
        # sda 2000 and nvme0n1 1000 sectors of 512 bytes in 2 s; partitions, dm, md, loop and ram count nothing.
        ("disk_read_bytes_per_second.sh", "768000"),
        ("disk_write_bytes_per_second.sh", "307200"),  # 400 and 800 sectors in 2 s
        ("network_receive_bytes_per_second.sh", "2500"),  # 4000 and 1000 bytes in 2 s, lo left out
        ("network_transmit_bytes_per_second.sh", "600"),  # 1000 and 200 bytes in 2 s
    ],
)
def test_a_difference_needs_two_runs(collect: Collect, script: str, value: str) -> None:
    first, second = collect(script, proc="before"), collect(script, proc="after")

    assert (first.stdout, first.returncode) == ("", 3)
    assert (second.stdout, second.returncode) == (f"{value}\n", 0), second.stderr


@pytest.mark.parametrize("name", DIFFERENCES)
def test_counters_that_went_backwards_are_no_data_and_the_next_run_recovers(collect: Collect, name: str) -> None:
    assert collect(f"{name}.sh", proc="before").returncode == 3
    assert collect(f"{name}.sh", proc="after").returncode == 0
    restarted = collect(f"{name}.sh", proc="restarted")
    assert (restarted.stdout, restarted.returncode) == ("", 3)
    assert collect(f"{name}.sh", proc="before").returncode == 0


@pytest.mark.parametrize("name", DIFFERENCES)
def test_two_runs_at_the_same_instant_are_no_data(collect: Collect, name: str) -> None:
    collect(f"{name}.sh", proc="before")

    assert collect(f"{name}.sh", proc="before").returncode == 3


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("damage", ["", "x y z\n", "1000.00"])
def test_a_damaged_sample_is_no_data(collect: Collect, tmp_path: Path, name: str, damage: str) -> None:
    (tmp_path / "state" / f"{name}.sh.sample").write_text(damage)

    run = collect(f"{name}.sh", proc="after")

    assert (run.stdout, run.returncode) == ("", 3)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("disk_free_bytes", "load_1m")])
def test_what_the_machine_does_not_have_is_no_data_and_never_zero(collect: Collect, name: str) -> None:
    for _ in range(2):
        run = collect(f"{name}.sh", proc="bare")
        assert (run.stdout, run.returncode) == ("", 3)
        assert run.stderr.startswith(f"{name}.sh: ")


@pytest.mark.parametrize("name", [n for n in NAMES if n != "disk_free_bytes"])
def test_a_missing_source_is_a_failure_that_names_the_file(collect: Collect, name: str) -> None:
    run = collect(f"{name}.sh", proc="nowhere")

    assert (run.stdout, run.returncode) == ("", 1)
    assert "proc_nowhere/" in run.stderr


def test_without_a_state_directory_a_difference_fails_with_the_remedy() -> None:
    command = ["sh", str(SCRIPTS / "cpu_free_ratio.sh")]

    run = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)

    assert run.returncode == 1
    assert "STATE_DIR" in run.stderr


def test_free_disk_space_is_what_the_file_system_says(collect: Collect, tmp_path: Path) -> None:
    free = int(collect("disk_free_bytes.sh", str(tmp_path)).stdout)

    assert free == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.05)


def test_free_space_of_a_missing_directory_is_a_failure_that_names_it(collect: Collect) -> None:
    run = collect("disk_free_bytes.sh", "/no/such/place")

    assert (run.stdout, run.returncode) == ("", 1)
    assert "/no/such/place" in run.stderr


@pytest.mark.parametrize("name", NAMES)
def test_on_this_machine_a_collector_prints_one_number(collect: Collect, name: str) -> None:
    deadline = time.monotonic() + 10
    run = collect(f"{name}.sh")
    while run.returncode == 3 and name in DIFFERENCES and time.monotonic() < deadline:
        run = collect(f"{name}.sh")
    if run.returncode == 3 and name.startswith(("disk_", "network_")):
        pytest.skip(f"this machine has nothing to measure: {run.stderr}")

    assert run.returncode == 0, run.stderr
    assert re.fullmatch(r"\d+(\.\d+)?\n", run.stdout)


def test_a_process_pinned_to_one_cpu_counts_that_cpu_alone(collect: Collect) -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        pinned = collect("cpu_count.sh").stdout
    finally:
        os.sched_setaffinity(0, allowed)

    assert (pinned, collect("cpu_count.sh").stdout) == ("1\n", f"{len(allowed)}\n")


def test_a_pinned_process_sees_how_busy_its_own_cpu_is(collect: Collect) -> None:
    allowed = os.sched_getaffinity(0)
    cpu = max(allowed)
    burner = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        os.sched_setaffinity(burner.pid, {cpu})
        os.sched_setaffinity(0, {cpu})
        free = [1.0]
        deadline = time.monotonic() + 10
        # Ten ticks at least between samples, which the collector's own work on this CPU takes.
        while free[-1] > 0.1 and time.monotonic() < deadline:
            run = collect("cpu_free_ratio.sh")
            free.append(float(run.stdout or 1))
    finally:
        os.sched_setaffinity(0, allowed)
        burner.kill()
        burner.wait()

    assert free[-1] <= 0.1


def test_every_catalogue_entry_has_its_file_and_every_file_its_entry() -> None:
    rows = tomllib.loads((ROOT / "collectors" / "catalog.toml").read_text())["producer"]
    shipped = {f"{path.parent.name}/{path.name}" for path in SCRIPTS.glob("[a-z]*.sh")}
    shipped |= {f"processors/{path.name}" for path in (ROOT / "collectors" / "processors").glob("[a-z]*.py")}
    commands = {row["data_name"]: row["cmd"].split()[0] for row in rows if row["kind"] != "program"}

    assert set(commands.values()) == shipped
    assert {Path(command).stem for command in commands.values()} == set(commands)
    assert len({row["data_name"] for row in rows}) == len(rows)
    assert all(row["help"] and row["unit"] for row in rows)
    assert all(
        os.access(ROOT / "collectors" / command, os.X_OK) for command in commands.values() if "scripts" in command
    )


EXAMPLE = ROOT / "examples" / "getCpuUsage.sh"


def usage(proc: str, state: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PROC_ROOT": str(FIXTURES / f"proc_{proc}")}
    if state is not None:
        environment["STATE_DIR"] = str(state)
    return subprocess.run([str(EXAMPLE)], env=environment, capture_output=True, text=True, check=False)


def test_the_paper_s_collector_prints_the_usage_since_boot_then_since_its_last_run(tmp_path: Path) -> None:
    # before: 2400 of 3200 ticks free; after: 150 of 500 more, guest time counted once.
    assert usage("before", tmp_path).stdout == "0.2500\n"
    assert usage("after", tmp_path).stdout == "0.7000\n"
    assert usage("before", None).stdout == "0.2500\n"


def test_the_paper_s_collector_has_no_data_after_a_restart(tmp_path: Path) -> None:
    usage("after", tmp_path)

    assert (usage("restarted", tmp_path).stdout, usage("restarted", tmp_path).returncode) == ("", 3)
