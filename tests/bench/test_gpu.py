"""What shows a card in a box, with a vendor of the tests' in place of NVIDIA: nothing here is a run on a card.

Real are the blob, the box, the CDI file and its library. The tool that writes the file is played, and a program that
asks the library for its version stands in for PyTorch.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.gpu.packing import pack
from tests.boxes.played_vendor import DEVICE, compile_library, write
from tests.recipes.pages import block

ROOT = Path(__file__).resolve().parents[2]
STEP = """
import ctypes, json, standin
version = ctypes.CDLL({library!r}).vendor_version()
with open("/dev/vendor0", "rb", buffering=0) as device, open("/proc/self/maps") as lines:
    assert device.read(1) == bytes(1)
    mapped = sorted({{line.split()[-1] for line in lines if ".so" in line}})
print(json.dumps({{"package": standin.__file__, "version": version, "deviations": [{deviation}], "mapped": mapped}}))
"""
Machine = Mapping[str, str]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """The variables of a machine with a driver of the vendor's, and a package that has brought another one."""
    driver, site = tmp_path / "driver", tmp_path / "site"
    package, note = site / "standin", site / "standin-1.0.dist-info"
    for folder in (driver, package, note):
        folder.mkdir(parents=True)
    compile_library(driver / "libvendor.so.1.7", 7)
    (package / "__init__.py").touch()
    (package / "libcuda.so.1").write_text("of another driver")
    (note / "METADATA").write_text("Name: standin\nVersion: 1.0\nRequires-Dist: of-another-platform; x == 'y'\n")
    (note / "RECORD").write_text("standin/__init__.py,,\nstandin/libcuda.so.1,,\n../bin/standin,,\n")
    mount = {"hostPath": f"{driver}/libvendor.so.1.7", "containerPath": "/usr/lib/vendor/libvendor.so.1.7"}
    own = {"deviceNodes": [{"path": "/dev/vendor0", "hostPath": "/dev/zero"}]}
    told = write(tmp_path / "told.json", own, {"mounts": [mount]})
    tool = tmp_path / "ctk"
    tool.write_text(f"#!/bin/sh\n[ \"$*\" = 'cdi generate --format=json' ] && cat {told}\n")
    tool.chmod(0o755)
    return {"NVIDIA_CTK": str(tool), "PYTHONPATH": str(site), "TMPDIR": str(tmp_path)}


def show(
    machine: Machine, folder: Path, library: str = "libvendor.so.1", deviation: str = "0.0"
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the manual's line, with what stands in for a card and for PyTorch."""
    program = folder / "step.py"
    program.write_text(STEP.format(library=library, deviation=deviation))
    python, *line = shlex.split(block("gpu-run").partition(">")[0])
    assert python == "python3"
    words = [sys.executable, *line, "--device", DEVICE, "--package", "standin", "--python", "/usr/bin/python3"]
    done = subprocess.run(
        [*words, "--program", program], cwd=ROOT, env=os.environ | machine, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_a_program_has_the_blob_and_the_machines_driver_and_is_refused_without(
    machine: Machine, tmp_path: Path
) -> None:
    before = sorted(os.listdir(tmp_path))  # noqa: PTH208

    code, printed, said = show(machine, tmp_path)

    assert code == 0, said
    record = json.loads(printed)
    assert (record["packages"], record["left_out"]) == ({"standin": "1.0"}, ["standin/libcuda.so.1"])
    assert (record["step"]["package"], record["step"]["version"]) == ("/opt/env/standin/__init__.py", 7)
    assert record["step"]["driver"] == ["/opt/driver/libvendor.so.1"]
    gone, exchanged = record["refused"].values()
    assert f"describes {DEVICE}" in gone and "libvendor.so.1.7.of-before, which is not there" in exchanged
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "step.py"])  # noqa: PTH208


def test_it_fails_when_another_driver_or_a_wrong_result_came(machine: Machine, tmp_path: Path) -> None:
    code, printed, said = show(machine, tmp_path, str(tmp_path / "driver" / "libvendor.so.1.7"), "float('nan')")

    assert code == 1 and json.loads(printed)["wrong"] == [
        "no library of the driver is used",
        "the card's result deviates by nan",
    ]
    assert "Error: no library of the driver is used" in said


def test_a_program_that_cannot_load_a_library_tells_so(machine: Machine, tmp_path: Path) -> None:
    code, _, said = show(machine, tmp_path, "libcuda-of-none.so.1")

    assert (
        code == 1 and "the program ended with 1: " in said and "libcuda-of-none.so.1: cannot open shared object" in said
    )


def test_a_machine_without_a_card_says_that_nothing_was_run(machine: Machine, tmp_path: Path) -> None:
    bare = {"NVIDIA_CTK": "/no/nvidia-ctk", "LDCONFIG": "/bin/true", "DEV_ROOT": str(tmp_path)}

    code, printed, said = show({**machine, **bare}, tmp_path)

    assert (code, printed) == (2, "")
    assert "Not run: neither /no/nvidia-ctk nor libraries and device files tell of a driver of NVIDIA" in said


def test_a_machine_without_the_package_says_so(machine: Machine, tmp_path: Path) -> None:
    code, _, said = show({**machine, "PYTHONPATH": ""}, tmp_path)

    assert code == 2 and "Not run: none of /usr/bin/python3 has the package standin: name one by --python" in said


def test_what_several_packages_have_is_taken_once_and_stays_as_it_is_on_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        package, note = tmp_path / name / "shared", tmp_path / name / f"{name}-1.0.dist-info"
        for folder in (package, note):
            folder.mkdir(parents=True)
        (package / "__init__.py").write_text(f"NAME = {name!r}\n")
        (note / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
        (note / "RECORD").write_text("shared/__init__.py,,\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    (tmp_path / "work").mkdir()

    packed = pack(Path("/usr/bin/python3"), ["one", "two", "one"], tmp_path / "work")

    assert packed.versions == {"one": "1.0", "two": "1.0"}
    kept = [(tmp_path / name / "shared/__init__.py").read_text() for name in ("one", "two")]
    assert kept == ["NAME = 'one'\n", "NAME = 'two'\n"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--python", "/no/python"], "Not run: none of /no/python has the package torch"),
        (["--program", "/no/step.py"], "--program: /no/step.py is not a file"),
        (["--folder", "/no/folder"], "--folder: /no/folder is not a folder"),
    ],
)
def test_what_is_not_there_is_told(machine: Machine, words: list[str], said: str) -> None:
    line = [sys.executable, "-m", "bench.gpu", "--device", DEVICE, *words]

    done = subprocess.run(line, cwd=ROOT, env=os.environ | machine, capture_output=True, text=True, check=False)

    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_the_step_is_of_pytorch_and_says_what_it_lacks_here() -> None:
    step = ROOT / "bench" / "gpu" / "step.py"
    has_torch = subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False)
    if has_torch.returncode:
        pytest.skip("Debian's PyTorch is not installed")

    done = subprocess.run(["/usr/bin/python3", step], capture_output=True, text=True, check=False)

    assert done.returncode == 1 and "Torch not compiled with CUDA enabled" in done.stderr
