"""Where an environment can run, and why not elsewhere."""

from __future__ import annotations

import pytest

from environments.fit import find_newest_fitting, find_obstacle, fit
from environments.manifest import Manifest, Part, Requires

OLD = {"cpu_architecture": "x86_64", "cpu_flags": "sse4_2 avx", "gpu_driver_version": "470.82.01"}
NEW = {"cpu_architecture": "x86_64", "cpu_flags": "sse4_2 avx avx2", "gpu_driver_version": "550.54.15"}
WITHOUT = {"cpu_architecture": "aarch64"}


@pytest.mark.parametrize(
    ("requires", "old", "new", "without"),
    [
        (Requires(), "", "", ""),
        (Requires(architecture="x86_64"), "", "", "its processors are aarch64, not x86_64"),
        (Requires(cpu_flags=["avx", "avx2"]), "its processors lack avx2", "", ""),
        (Requires(cuda="11.8"), "", "", "it has no card of NVIDIA whose driver is known"),
        (
            Requires(cuda="12.1"),
            "driver 470.82.01 is older than CUDA 12.1 needs: 525",
            "",
            "it has no card of NVIDIA whose driver is known",
        ),
        (
            Requires(cuda="12.8", driver="570"),
            "driver 470.82.01 is older than CUDA 12.8 needs: 525",
            "driver 550.54.15 is older than 570",
            "it has no card of NVIDIA whose driver is known",
        ),
    ],
)
def test_an_obstacle_is_named(requires: Requires, old: str, new: str, without: str) -> None:
    assert fit(requires, {"old": OLD, "new": NEW, "without": WITHOUT}) == {"old": old, "new": new, "without": without}


def test_a_node_that_tells_nothing_is_left_out_for_its_cards_alone() -> None:
    assert find_obstacle(Requires(architecture="x86_64", cpu_flags=["avx"]), {}) == ""
    assert find_obstacle(Requires(cuda="11.1"), {}) == "it has no card of NVIDIA whose driver is known"


def test_versions_of_any_length_are_judged() -> None:
    huge = "9" * 5000

    assert find_obstacle(Requires(cuda="12.1", driver="550"), {"gpu_driver_version": huge}) == ""
    assert find_obstacle(Requires(cuda=huge), NEW) == ""
    assert find_obstacle(Requires(driver=huge), NEW) == f"driver 550.54.15 is older than {huge}"


def test_the_newest_version_that_would_run_is_found() -> None:
    versions = [
        Manifest("torch", version, "3.11", [Part("/", "0" * 64, 1)], Requires(cuda=cuda))
        for version, cuda in (("1.9", "11.1"), ("1.13", "11.7"), ("2.4", "12.4"))
    ]

    assert (found := find_newest_fitting(versions, {"old": OLD, "without": WITHOUT})) and found.version == "1.13"
    assert (found := find_newest_fitting(versions, {"old": OLD, "new": NEW})) and found.version == "2.4"
    assert find_newest_fitting(versions, {"without": WITHOUT}) is None
