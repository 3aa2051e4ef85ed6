"""What the collectors make of /sys, nvidia-smi and file systems."""

from __future__ import annotations

import json
import os
import platform
import socket
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.boxes.played_gpus import PlayedGpus

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = tomllib.loads((ROOT / "collectors" / "catalog.toml").read_text())["producer"]
EMITS = {name: row.get("emits", []) for name, row in CATALOGUE.items()}

Collect = Callable[..., Any]
Tree = Callable[[Path, dict[str, str]], Path]


def test_a_cpu_without_a_clock_in_cpuinfo_has_it_in_sys(collect: Collect, tmp_path: Path, tree: Tree) -> None:
    clock = "devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
    sys = tree(tmp_path / "sys", {clock.format(0): "1000000\n", clock.format(10): "2000000\n"})

    assert collect("cpu_info", proc="bare", SYS_ROOT=str(sys)).values == {"cpu_frequency_hertz": "1500000000"}


def card(name: str, state: str, speed: str) -> dict[str, str]:
    return {f"class/net/{name}/operstate": f"{state}\n", f"class/net/{name}/speed": f"{speed}\n"}


@pytest.mark.parametrize(
    ("cards", "bits"),
    [
        (card("eth0", "up", "1000") | card("eth1", "up", "25000"), "25000000000\n"),
        (card("eth0", "up", "1000") | card("eth1", "down", "25000"), "1000000000\n"),
        (card("eth0", "up", "10") | card("veth1a2b", "up", "10000") | card("docker0", "up", "10000"), "10000000\n"),
        (card("eth0", "up", "10") | card("br0", "up", "10000") | card("ovs-br", "up", "10000"), "10000000\n"),
        (card("bridge_card", "up", "10"), "10000000\n"),
        (card("eth0", "up", "-1") | card("lo", "unknown", ""), ""),
        (card("eth0", "up", ""), ""),
        ({"class/net/eth0/operstate": "up\n"}, ""),
        ({}, ""),
    ],
)
def test_the_link_speed_is_that_of_the_fastest_card_that_is_up(
    collect: Collect, tools: dict[str, str], tmp_path: Path, cards: dict[str, str], bits: str, tree: Tree
) -> None:
    run = collect("network_link_bits_per_second", SYS_ROOT=str(tree(tmp_path / "sys", cards)), **tools)

    assert run.stdout == bits
    assert bits or run.is_no_data


ZONE, CHIP = "class/thermal/thermal_zone{}/temp", "class/hwmon/hwmon0/temp{}_input"


@pytest.mark.parametrize(
    ("sensors", "celsius"),
    [
        ({ZONE.format(0): "45500\n", ZONE.format(1): "27800\n", CHIP.format(1): "61000\n"}, "61.0\n"),
        ({ZONE.format(0): "-12000\n", ZONE.format(1): "-30500\n"}, "-12.0\n"),
        ({ZONE.format(0): "-274000\n", ZONE.format(1): "0\n", CHIP.format(1): "4294967295\n"}, ""),
        ({ZONE.format(0): "", CHIP.format(1): "?\n"}, ""),
        ({}, ""),
    ],
)
def test_the_temperature_is_that_of_the_hottest_sensor_that_makes_sense(
    collect: Collect, tools: dict[str, str], tmp_path: Path, sensors: dict[str, str], celsius: str, tree: Tree
) -> None:
    run = collect("temperature_celsius", SYS_ROOT=str(tree(tmp_path / "sys", sensors)), **tools)

    assert run.stdout == celsius
    assert celsius or run.is_no_data


def test_the_images_of_boxes_are_those_that_an_operator_allows(collect: Collect, tmp_path: Path) -> None:
    one, two = "sha256:" + "1" * 64, "sha256:" + "2" * 64
    (tmp_path / "images").write_text(f"{one}  torch\n# no image\nsha256:12\n\n{two}\n")
    with socket.socket(socket.AF_UNIX) as broker:
        assert collect("box_images", BROKER=str(tmp_path / "b"), IMAGES=str(tmp_path / "images")).is_no_data
        broker.bind(str(tmp_path / "b"))
        run = collect("box_images", BROKER=str(tmp_path / "b"), IMAGES=str(tmp_path / "images"))
        none = collect("box_images", BROKER=str(tmp_path / "b"), IMAGES=str(tmp_path / "nowhere"))
        (tmp_path / "empty").write_text("# none yet\n")
        empty = collect("box_images", BROKER=str(tmp_path / "b"), IMAGES=str(tmp_path / "empty"))

    assert run.stdout == f"{one} {two}\n"
    assert none.is_no_data and empty.is_no_data


BANNER = "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA {}Version: 12.4     |"
CARD = "NVIDIA A100-SXM4-40GB, 550.54.15, 40960, 1024, {}"


@pytest.fixture
def nvidia_smi(tmp_path: Path, tree: Tree) -> Callable[..., dict[str, str]]:
    """nvidia_smi(LINES, banner, status): the environment of a collector that finds a program answering like this."""

    def write(lines: list[str], banner: str = BANNER.format(""), status: int = 0) -> dict[str, str]:
        program = tmp_path / "nvidia-smi"
        tree(tmp_path, {"cards": "".join(f"{line}\n" for line in lines), "banner": f"{banner}\n"})
        program.write_text(
            f'#!/bin/sh\ncase "$*" in --query-gpu=*) cat "{tmp_path}/cards" ;; *) cat "{tmp_path}/banner" ;; esac\n'
            f"exit {status}\n"
        )
        program.chmod(0o755)
        return {"NVIDIA_SMI": str(program)}

    return write


@pytest.mark.parametrize("word", ["", "UMD "])
def test_several_gpus_are_added_up(
    collect: Collect, tools: dict[str, str], nvidia_smi: Callable[..., dict[str, str]], word: str
) -> None:
    run = collect("gpu_usage", **tools, **nvidia_smi([CARD.format(100), CARD.format(25)], BANNER.format(word)))

    assert run.values == {
        "gpu_count": "2",
        "gpu_model": "NVIDIA A100-SXM4-40GB",
        "gpu_driver_version": "550.54.15",
        "gpu_cuda_version": "12.4",
        "gpu_memory_total_bytes": "85899345920",
        "gpu_memory_used_bytes": "2147483648",
        "gpu_utilisation_ratio": "0.6250",
    }
    assert set(run.values) == set(EMITS["gpu_usage"])


def test_what_not_every_gpu_tells_is_left_out(collect: Collect, nvidia_smi: Callable[..., dict[str, str]]) -> None:
    lines = [CARD.format("[N/A]"), "NVIDIA T4, 550.54.15, 16384, [Not Supported], 5"]
    run = collect("gpu_usage", **nvidia_smi(lines, banner="no version here"))

    assert run.values == {
        "gpu_count": "2",
        "gpu_model": "NVIDIA A100-SXM4-40GB, NVIDIA T4",
        "gpu_driver_version": "550.54.15",
        "gpu_memory_total_bytes": "60129542144",
    }


@pytest.mark.parametrize(
    ("said", "status", "ended"),
    [
        ([], 0, 3),
        (["No devices were found"], 0, 3),
        (["No devices were found"], 6, 3),
        (["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."], 9, 3),
        (["NVIDIA-SMI couldn't find libnvidia-ml.so library in your system."], 12, 3),
        (["Failed to initialize NVML: Driver/library version mismatch"], 18, 1),
    ],
)
def test_no_gpu_is_no_data_and_a_broken_driver_is_a_failure_that_tells_what_was_said(
    collect: Collect, nvidia_smi: Callable[..., dict[str, str]], said: list[str], status: int, ended: int
) -> None:
    run = collect("gpu_usage", **nvidia_smi(said, status=status))

    assert (run.stdout, run.status) == ("", ended)
    assert status == 0 or said[0] in run.stderr


def test_a_node_without_nvidia_smi_has_no_gpu_data(collect: Collect) -> None:
    assert collect("gpu_usage").is_no_data


def test_each_card_is_told_by_itself(collect: Collect, tools: dict[str, str], tmp_path: Path, tree: Tree) -> None:
    cards = '0, GPU-a, NVIDIA "T4", 16384, 16000, 5, 7.5\n1, GPU-b, NVIDIA H100, 81920, [N/A], [N/A], 9.0\n'
    tree(tmp_path, {"cards": cards, "processes": "GPU-b\nGPU-b\n"})
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in --query-gpu=*) cat "{tmp_path}/cards" ;; *) cat "{tmp_path}/processes" ;; esac\n'
    )
    program.chmod(0o755)

    run = collect("gpu_cards", **tools, NVIDIA_SMI=str(program))

    common = ("index", "model", "memory_total_bytes", "memory_free_bytes", "utilisation_ratio", "compute_capability")
    assert json.loads(run.stdout) == [
        dict(zip((*common, "processes"), (0, "NVIDIA T4", 16384 << 20, 16000 << 20, 0.05, "7.5", 0), strict=True)),
        dict(zip((*common, "processes"), (1, "NVIDIA H100", 81920 << 20, None, None, "9.0", 2), strict=True)),
    ]
    assert collect("gpu_cards").is_no_data


def test_a_driver_that_knows_no_compute_capability_tells_the_rest(
    collect: Collect, tools: dict[str, str], tmp_path: Path
) -> None:
    gpus = PlayedGpus(tmp_path / "gpus")
    gpus.have("Tesla T4, 15360, 100, 7.5")
    gpus.use({0: [4711]})
    (gpus.folder / "old").touch()

    run = collect("gpu_cards", **tools, **gpus.variables)

    (card,) = json.loads(run.stdout)
    assert (card["model"], card["compute_capability"], card["processes"]) == ("Tesla T4", "", 1)
    (gpus.folder / "cards").write_text("")
    assert collect("gpu_cards", **tools, **gpus.variables).is_no_data


def test_the_kind_of_the_machine_is_what_builders_ask_for(collect: Collect, tools: dict[str, str]) -> None:
    run = collect("machine_kind", **tools)

    assert run.values["cpu_architecture"] == os.uname().machine
    assert run.values["libc_version"] == platform.libc_ver()[1]


def test_disk_space_is_what_the_file_system_says(collect: Collect, tmp_path: Path) -> None:
    said = {name: int(value) for name, value in collect("disk_space", str(tmp_path)).values.items()}
    true = os.statvfs(tmp_path)

    assert said["disk_total_bytes"] == true.f_blocks * true.f_frsize
    assert said["disk_free_bytes"] == pytest.approx(true.f_bavail * true.f_frsize, rel=0.05)
    assert said.get("disk_inodes_total", 0) == true.f_files
    assert said.get("disk_inodes_free", 0) == pytest.approx(true.f_ffree, rel=0.05)


def test_a_file_system_without_a_size_is_no_data(collect: Collect) -> None:
    assert collect("disk_space", "/proc").is_no_data


def test_space_of_a_missing_directory_is_a_failure_that_names_it(collect: Collect) -> None:
    run = collect("disk_space", "/no/such/place")

    assert (run.stdout, run.status) == ("", 1)
    assert "/no/such/place" in run.stderr
