"""What the collectors make of /proc, on fixtures whose values were computed by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = tomllib.loads((ROOT / "collectors" / "catalog.toml").read_text())["producer"]
EMITS = {name: row.get("emits", []) for name, row in CATALOGUE.items()}
DIFFERENCES = ["cpu_free_ratio", "cpu_usage", "disk_io", "network_io"]
PROC_ONLY = ["cpu_count", "cpu_info", "load_1m", "memory_usage", "system_load", *DIFFERENCES]
OFTEN = [name for name, row in CATALOGUE.items() if row["kind"] == "collector" and row["time_max"] <= 5]
# Even the barest machine has memory and is up; the others may have nothing that their collector measures.
NEVER_WITHOUT = ("load_1m", "memory_usage", "system_load")

Collect = Callable[..., Any]
Tree = Callable[[Path, dict[str, str]], Path]


@pytest.mark.parametrize(("name", "value"), [("cpu_count", "2"), ("load_1m", "1.25")])  # cpu10 may not be used
def test_an_instant_value_is_read_from_proc(collect: Collect, tools: dict[str, str], name: str, value: str) -> None:
    run = collect(name, proc="before", **tools)

    assert (run.stdout, run.status) == (f"{value}\n", 0), run.stderr


def test_the_free_cpu_is_the_idle_share_since_the_run_before(collect: Collect, tools: dict[str, str]) -> None:
    first, second = (collect("cpu_free_ratio", proc=proc, **tools) for proc in ("before", "after"))

    assert first.is_no_data
    # cpu0: 150 of 200 ticks free, guest time counted once; cpu1: 0 of 200; cpu10 may not be used.
    assert (second.stdout, second.status) == ("0.3750\n", 0), second.stderr


INSTANTS: list[tuple[str, dict[str, str]]] = [
    (
        "cpu_info",  # two of the three CPUs share a core; 2000, 3000 and 2500 MHz
        {
            "cpu_core_count": "2",
            "cpu_frequency_hertz": "2500000000",
            "cpu_model": "Maker(R) Processor 9 @ 2.50GHz",
        },
    ),
    (
        "memory_usage",
        {
            "memory_total_bytes": "8388608",
            "memory_free_bytes": "1048576",
            "memory_available_bytes": "2097152",
            "memory_cached_bytes": "466944",  # 100 + 300 + 56 kB
            "memory_dirty_bytes": "8192",
            "swap_total_bytes": "4194304",
            "swap_free_bytes": "4096000",
        },
    ),
    (
        "pressure_stall",
        {
            "cpu_pressure_some_ratio": "0.1250",
            "memory_pressure_some_ratio": "0.0100",
            "memory_pressure_full_ratio": "0.0050",
            "io_pressure_some_ratio": "1.0000",
            "io_pressure_full_ratio": "0.9999",
        },
    ),
    (
        "system_load",
        {
            "load_5m": "0.75",
            "load_15m": "0.50",
            "threads_total": "345",
            "processes_total": "2",
            "processes_running": "2",
            "processes_blocked": "1",
            "open_files": "1024",
            "uptime_seconds": "1000.00",
        },
    ),
]
RATES: list[tuple[str, dict[str, str]]] = [
    (
        "cpu_usage",  # of 400 ticks
        {
            "cpu_user_ratio": "0.4750",  # 30 + 140, and 20 nice
            "cpu_system_ratio": "0.0750",
            "cpu_iowait_ratio": "0.0250",
            "cpu_interrupt_ratio": "0.0375",  # 10 + 5
            "cpu_steal_ratio": "0.0375",
        },
    ),
    (
        "disk_io",  # sda and nvme0n1 in 2 s; partitions, dm, md, loop and ram count nothing
        {
            "disk_read_bytes_per_second": "768000",  # 2000 + 1000 sectors of 512 bytes
            "disk_write_bytes_per_second": "307200",
            "disk_reads_per_second": "15.00",  # 20 + 10
            "disk_writes_per_second": "6.00",
            "disk_utilisation_ratio": "0.7500",  # sda 1500 ms, nvme0n1 2 ms
        },
    ),
    (
        "network_io",  # eth0 and eth1 in 2 s; lo, a VLAN, a bridge and a container's end count nothing
        {
            "network_receive_bytes_per_second": "2500",  # 4000 + 1000
            "network_transmit_bytes_per_second": "600",
            "network_receive_packets_per_second": "25.00",  # 40 + 10
            "network_transmit_packets_per_second": "11.00",
            "network_errors_per_second": "2.00",  # 3 received, 1 sent
            "network_drops_per_second": "3.00",
        },
    ),
]


@pytest.mark.parametrize(("name", "expected"), INSTANTS)
def test_one_run_brings_every_name_of_its_catalogue_entry(
    collect: Collect, tools: dict[str, str], name: str, expected: dict[str, str]
) -> None:
    run = collect(name, proc="before", **tools)

    assert (run.values, run.status, run.stderr) == (expected, 0, "")
    assert set(expected) == set(EMITS[name])


@pytest.mark.parametrize(("name", "expected"), RATES)
def test_the_second_run_brings_every_rate_of_its_catalogue_entry(
    collect: Collect, tools: dict[str, str], name: str, expected: dict[str, str]
) -> None:
    first, second = (collect(name, proc=proc, **tools) for proc in ("before", "after"))

    assert first.is_no_data
    assert (second.values, second.status, second.stderr) == (expected, 0, "")
    assert set(expected) == set(EMITS[name])


@pytest.mark.parametrize("name", DIFFERENCES)
def test_counters_that_went_backwards_are_no_data_and_the_next_run_recovers(collect: Collect, name: str) -> None:
    assert collect(name, proc="before").status == 3
    assert collect(name, proc="after").status == 0
    assert collect(name, proc="restarted").is_no_data
    assert collect(name, proc="before").status == 0


@pytest.mark.parametrize("name", DIFFERENCES)
def test_two_runs_at_the_same_instant_are_no_data(collect: Collect, name: str) -> None:
    collect(name, proc="before")

    assert collect(name, proc="before").is_no_data


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("damage", ["", "x y z\n", "1000.00", "1000.00\neth0 1 2\nsda\ncpu0 x y\n", "\0\n\0 \0"])
def test_a_damaged_sample_is_no_data(collect: Collect, tmp_path: Path, name: str, damage: str, tree: Tree) -> None:
    tree(tmp_path, {f"state/{name}/sample": damage})

    assert collect(name, proc="after").is_no_data
    assert collect(name, proc="before").status == 3
    assert collect(name, proc="after").status == 0


def machine(uptime: int, **files: str) -> dict[str, str]:
    """The /proc of a machine with one CPU allowed, up for so many seconds, with these files."""
    return {"uptime": f"{uptime}.00 1.00\n", "self/status": "Cpus_allowed_list:\t0\n"} | files


def disk(name: str, sectors_read: int) -> str:
    return f"8 0 {name} 0 0 {sectors_read} 0 0 0 0 0 0 0 0\n"


def test_a_disk_that_is_new_or_started_again_counts_from_the_next_run_on(
    collect: Collect, tmp_path: Path, tree: Tree
) -> None:
    read = []
    for uptime, sda, sdb in [
        (10, 100, None),
        (12, 108, 99_999),
        (14, 116, 100_007),
        (16, 3, 100_015),
        (18, 11, 100_023),
    ]:
        disks = disk("sda", sda) + (disk("sdb", sdb) if sdb else "")
        run = collect("disk_io", proc=tree(tmp_path / "proc", machine(uptime, diskstats=disks)))
        read.append(run.values.get("disk_read_bytes_per_second"))

    # 8 sectors of 512 bytes in 2 s make 2048; sdb is new at 12, sda starts again at 16.
    assert read == [None, "2048", "4096", "2048", "4096"]


def test_counters_beyond_32_bits_lose_nothing(
    collect: Collect, tools: dict[str, str], tmp_path: Path, tree: Tree
) -> None:
    ticks = 2**42
    for uptime, user, idle in [(10, ticks, ticks), (12, ticks + 25, ticks + 75)]:
        files = machine(uptime, stat=f"cpu0 {user} 0 0 {idle} 0 0 0 0 0 0\n")
        proc = tree(tmp_path / "proc", files)
        run = collect("cpu_free_ratio", proc=proc, **tools)

    assert run.stdout == "0.7500\n"


@pytest.mark.parametrize("name", [*(n for n in PROC_ONLY if n not in NEVER_WITHOUT), "pressure_stall"])
def test_what_the_machine_does_not_have_is_no_data_and_never_zero(collect: Collect, name: str) -> None:
    assert collect(name, proc="bare").is_no_data
    assert collect(name, proc="bare").is_no_data


@pytest.mark.parametrize("name", PROC_ONLY)
def test_a_missing_source_is_a_failure_that_names_the_file(collect: Collect, name: str) -> None:
    run = collect(name, proc="nowhere")

    assert (run.stdout, run.status) == ("", 1)
    assert "proc_nowhere/" in run.stderr


def test_a_part_of_the_values_is_better_than_none(collect: Collect, tmp_path: Path, tree: Tree) -> None:
    half = tree(tmp_path / "half", {"pressure/io": "some avg10=5.00 avg60=0.00 avg300=0.00 total=1\n"})

    assert set(collect("memory_usage", proc="bare").values) == {"memory_total_bytes", "memory_free_bytes"}
    assert collect("pressure_stall", proc=half).values == {"io_pressure_some_ratio": "0.0500"}
    # The first process is hidden, so others may be; there is no count of open files.
    assert set(EMITS["system_load"]) - set(collect("system_load", proc="bare").values) == {
        "processes_total",
        "processes_running",
        "processes_blocked",
        "open_files",
    }


def test_without_a_state_directory_a_difference_fails_with_the_remedy(execute: Collect) -> None:
    run = execute(["sh", str(ROOT / "collectors" / "scripts" / "cpu_free_ratio.sh")])

    assert run.status == 1
    assert "STATE_DIR" in run.stderr


def test_on_a_full_disk_a_difference_fails_and_the_old_sample_stays(
    collect: Collect, tools: dict[str, str], tmp_path: Path
) -> None:
    collect("disk_io", proc="before", **tools)
    full = tmp_path / "state" / "disk_io" / "sample.new"
    full.symlink_to("/dev/full")

    assert collect("disk_io", proc="after", **tools).status == 1
    full.unlink()
    assert collect("disk_io", proc="after", **tools).values == dict(RATES)["disk_io"]


@pytest.mark.parametrize("name", OFTEN)
def test_what_runs_every_few_seconds_starts_no_program(collect: Collect, tmp_path: Path, name: str) -> None:
    run = collect(name, proc="before", shell="/bin/sh", PATH=str(tmp_path))
    if name in DIFFERENCES:
        run = collect(name, proc="after", shell="/bin/sh", PATH=str(tmp_path))

    assert (run.status, run.stderr) == (0, "")


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_sample_that_was_cut_off_is_not_taken_for_an_earlier_one(collect: Collect, tmp_path: Path, name: str) -> None:
    assert collect(name, proc="before").status == 3
    sample = tmp_path / "state" / name / "sample"
    sample.write_text(sample.read_text().removesuffix("end\n"))

    assert collect(name, proc="after").is_no_data
