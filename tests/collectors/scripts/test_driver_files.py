"""What the collector of the driver's files makes of NVIDIA's tool, or of what the dynamic linker and /dev show."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from boxes.cdi.finding import find
from tests.recipes.pages import block

ROOT = Path(__file__).resolve().parents[3]
Collect = Callable[..., Any]
SAID = '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0", "containerEdits": {}}]}'


def program(file: Path, text: str) -> str:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


@pytest.fixture
def driver(tmp_path: Path) -> dict[str, str]:
    """The environment of a collector that finds a driver of version 550 and two cards, but no tool of NVIDIA's."""
    devices, libraries = tmp_path / "dev", tmp_path / "lib"
    for folder in (devices, libraries):
        folder.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (devices / name).symlink_to("/dev/null")
    (devices / "nvidia2").write_text("no device file")
    (devices / "nvidia-nvswitch0").symlink_to("/dev/null")
    install(libraries, "550.54")
    kind = {"x86_64": "x86-64", "aarch64": "AArch64"}[os.uname().machine]
    names = ("libcuda", "libnvidia-ml", "libz", "libnvidia-container")
    listed = [f"\t{name}.so.1 (libc6,{kind}) => {libraries}/{name}.so.1" for name in names]
    lines = "\n".join(["4 libs found", *listed, "\tlibcuda.so.1 (libc6) => /of/another/machine/libcuda.so.1"])
    linker = program(tmp_path / "ldconfig", f"cat <<'END'\n{lines}\nEND")
    return {"DEV_ROOT": str(devices), "LDCONFIG": linker, "NVIDIA_CTK": "/no/nvidia-ctk"}


def install(folder: Path, version: str) -> None:
    for name in ("libcuda", "libnvidia-ml", "libz"):
        (folder / f"{name}.so.{version}").touch()
        (folder / f"{name}.so.1").unlink(missing_ok=True)
        (folder / f"{name}.so.1").symlink_to(f"{name}.so.{version}")


def test_without_nvidias_tool_the_driver_is_what_the_linker_and_dev_show(
    collect: Collect, tools: dict[str, str], driver: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "cdi").mkdir(mode=0o755)

    printed = collect("driver_files", "print", **tools, **driver)

    assert [one["name"] for one in json.loads(printed.stdout)["devices"]] == ["0", "1", "all"]
    (tmp_path / "cdi" / "nvidia.json").write_text(printed.stdout)
    (tmp_path / "cdi" / "nvidia.json").chmod(0o644)
    one = find(["nvidia.com/gpu=1"], [str(tmp_path / "cdi")])
    assert [(str(node.path), node.host.name) for node in one.nodes] == [
        ("/dev/nvidia-nvswitch0", "nvidia-nvswitch0"),
        ("/dev/nvidiactl", "nvidiactl"),
        ("/dev/nvidia1", "nvidia1"),
    ]
    assert [(mount.path.name, mount.host.name) for mount in one.mounts] == [
        ("libcuda.so.1", "libcuda.so.550.54"),
        ("libnvidia-ml.so.1", "libnvidia-ml.so.550.54"),
    ]
    everything = find(["nvidia.com/gpu=all"], [str(tmp_path / "cdi")])
    assert {node.path.name for node in everything.nodes} == {"nvidia-nvswitch0", "nvidia0", "nvidia1", "nvidiactl"}


def test_the_digest_is_that_of_the_file_and_another_after_an_upgrade(
    collect: Collect, tools: dict[str, str], driver: dict[str, str], tmp_path: Path
) -> None:
    first, again = (collect("driver_files", **tools, **driver) for _ in range(2))
    printed = collect("driver_files", "print", **tools, **driver).stdout

    assert first.values == again.values == {"driver_digest": hashlib.sha256(printed.encode()).hexdigest()}
    install(tmp_path / "lib", "560.1")
    assert collect("driver_files", **tools, **driver).values != first.values


def test_a_cdi_file_from_before_an_upgrade_is_told_until_it_is_written_anew(
    collect: Collect, tools: dict[str, str], driver: dict[str, str], tmp_path: Path
) -> None:
    def missing() -> str:
        run = collect("driver_missing", **tools, CDI_FOLDERS=f"{tmp_path}/cdi {tmp_path}/run")
        assert run.status == 0, run.stderr
        return str(run.stdout.strip())

    def write(folder: str) -> Path:
        (tmp_path / folder).mkdir(exist_ok=True)
        file = tmp_path / folder / "nvidia.json"
        body = json.loads(collect("driver_files", "print", **tools, **driver).stdout)
        hook = {"hookName": "createContainer", "path": "/no/nvidia-ctk", "args": ["nvidia-ctk", "hook", "chmod"]}
        file.write_text(json.dumps(body | {"containerEdits": body["containerEdits"] | {"hooks": [hook]}}))
        return file

    file = write("cdi")
    (tmp_path / "cdi" / "other.json").write_text('{"kind": "vendor.com/card", "path": "/no/card"}')
    assert missing() == "none"
    for library in (tmp_path / "lib").glob("*.so.550.54"):
        library.unlink()
    install(tmp_path / "lib", "560.1")
    assert missing() == f"{file} names {tmp_path}/lib/libcuda.so.550.54, which is not there"
    write("run")
    assert missing() == "none", "what a later folder says of a device counts"
    (tmp_path / "run" / "nvidia.json").unlink()
    write("cdi")
    assert missing() == "none"
    (tmp_path / "dev" / "nvidia1").unlink()
    assert missing() == f"{file} names {tmp_path}/dev/nvidia1, which is not there"
    other = tmp_path / "run" / "a file.json"
    device = {"name": "0", "containerEdits": {"deviceNodes": [{"path": "/no/one"}]}}
    other.write_text(json.dumps({"kind": "nvidia.com/gpu", "devices": [device]}, indent=1))
    assert missing() == f"{other} names /no/one, which is not there"


def test_nvidias_tool_is_asked_where_it_is(
    collect: Collect, tools: dict[str, str], driver: dict[str, str], tmp_path: Path
) -> None:
    tool = program(tmp_path / "nvidia-ctk", f"[ \"$*\" = 'cdi generate --format=json' ] && echo '{SAID}'")

    run = collect("driver_files", "print", **tools, **driver | {"NVIDIA_CTK": tool})

    assert run.stdout == f"{SAID}\n"
    tool = program(tmp_path / "nvidia-ctk", "echo no NVML >&2; exit 1")
    broken = collect("driver_files", **tools, **driver | {"NVIDIA_CTK": tool})
    assert (broken.stdout, broken.status) == ("", 1)
    assert broken.stderr == f"no NVML\n{tool} cannot describe the driver\n"


def test_a_node_without_a_driver_has_none(collect: Collect, driver: dict[str, str], tmp_path: Path) -> None:
    assert collect("driver_files", **driver | {"LDCONFIG": "/no/ldconfig"}).is_no_data
    assert collect("driver_files", **driver | {"DEV_ROOT": str(tmp_path)}).is_no_data
    assert collect("driver_missing", CDI_FOLDERS=str(tmp_path)).is_no_data


def test_the_recipe_writes_a_file_that_boxes_take(driver: dict[str, str], tmp_path: Path) -> None:
    line = block("driver-write").replace("/etc/cdi", f"{tmp_path}/cdi").replace("sudo ", "")

    subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=ROOT, env={**os.environ, **driver}, check=True)

    assert find(["nvidia.com/gpu=0"], [f"{tmp_path}/cdi"]).mounts
