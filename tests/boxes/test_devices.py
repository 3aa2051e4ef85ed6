"""A device and its driver, which the node has and no environment: named in CDI files, bound into boxes, exchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from signal import SIGTERM

import pytest

from bench.docker_here import DockerHere
from boxes import create
from boxes.box import BoxError, Ended, Image, Limits, Program
from boxes.gpus.cards import Card, Wanted
from boxes.gpus.taking import Taken, take_cards
from boxes.terminal import Size
from environments.squash import squash
from tests.boxes.played_gpus import uuid
from tests.boxes.played_vendor import DEVICE, PlayedVendor, compile_library, write
from tests.boxes.test_boxes import SECONDS, Heard

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import ctypes
driver = ctypes.CDLL("libvendor.so.1")
with open("/dev/vendor0", "rb", buffering=0) as device:
    print("driver", driver.vendor_version(), "device", device.read(3))
"""
"""Knows the library by its soname alone."""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A part of an environment in which the program lies, and nothing of the driver."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "program.py").write_text(PROGRAM)
    squash(tmp_path / "tree", tmp_path / "part.sqfs")
    return tmp_path / "part.sqfs"


def run(
    folder: Path,
    part: Path,
    *argv: str,
    device: str | None = DEVICE,
    wished: Sequence[Sequence[str]] = (),
    **variables: str,
) -> tuple[Ended | None, str]:
    """How a program with the environment, a device and wished ones ends, and what it prints."""
    heard, box = Heard(), create("process")
    devices = (device,) if device else ()
    environment = {"PATH": "/usr/bin:/bin", **variables}
    parts = {"/opt/env": part}
    box.start(Program(argv, environment, folder, Limits(64), parts=parts, devices=devices, wished=wished), heard)
    return box.wait(SECONDS), (heard.stdout + heard.stderr).decode()


OURS = ("python3", "/opt/env/program.py")


def test_after_an_upgrade_of_the_driver_the_same_environment_runs_on(
    environment: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    before = environment.read_bytes()
    install(1)
    assert run(tmp_path, environment, *OURS) == (Ended(0), "driver 1 device b'\\x00\\x00\\x00'\n")

    file = install(2)
    assert run(tmp_path, environment, *OURS) == (Ended(0), "driver 2 device b'\\x00\\x00\\x00'\n")
    assert environment.read_bytes() == before

    ended, said = run(tmp_path, environment, *OURS, device=None)
    assert ended == Ended(1) and "libvendor.so.1: cannot open shared object file" in said
    file.unlink()
    with pytest.raises(BoxError, match=f"no CDI file in .*cdi describes {DEVICE}"):
        run(tmp_path, environment, *OURS)


def test_a_driver_that_was_exchanged_without_its_cdi_file_is_refused_by_name(
    environment: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    install(1)
    (tmp_path / "driver" / "libvendor.so.1.1").rename(tmp_path / "driver" / "libvendor.so.1.2")

    with pytest.raises(
        BoxError, match=r"vendor.json: .*mounts\[0\] names .*1.1, which is not there: .* writes the file anew"
    ):
        run(tmp_path, environment, *OURS)


def test_a_device_is_the_nodes_own_and_of_the_node_nothing_changes(
    environment: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    file = install(1)
    nodes = [{"path": "/dev/vendor0", "hostPath": "/dev/full"}, {"path": "/srv/card/0", "hostPath": "/dev/zero"}]
    write(file, {"deviceNodes": nodes}, {"env": ["CARD=vendor"]})
    before = sorted(os.listdir("/dev"))  # noqa: PTH208
    script = "echo $CARD; head -c 2 /srv/card/0 | od -An -tx1; echo x > /dev/vendor0; echo x > /dev/null; ls -A /dev"

    ended, said = run(tmp_path, environment, "bash", "-c", script, CARD="mine")

    lines = said.split("\n")
    assert (ended, lines[:2]) == (Ended(0), ["vendor", " 00 00"])
    assert "No space left on device" in said
    assert {"vendor0", *before} <= set(lines)
    assert sorted(os.listdir("/dev")) == before and not Path("/srv/card").exists()  # noqa: PTH208


def test_files_of_a_driver_cannot_be_written_and_lie_over_those_of_the_node(
    environment: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    file = install(1)
    (tmp_path / "over").write_text("the driver's\n")
    (tmp_path / "old").write_text("the node's\n")
    mounts = [
        {"hostPath": str(tmp_path / "over"), "containerPath": str(tmp_path / "old")},
        {"hostPath": str(tmp_path), "containerPath": "/srv/folder"},
    ]
    write(file, {}, {"mounts": mounts})

    _, said = run(
        tmp_path, environment, "bash", "-c", "cat old; echo x > old; cat /srv/folder/over; touch /srv/folder/x"
    )

    assert said.startswith("the driver's\nthe driver's\n") and said.count("Read-only file system") == 2
    assert (tmp_path / "old").read_text() == "the node's\n" and not (tmp_path / "x").exists()


def test_the_libraries_of_a_program_come_behind_those_of_the_driver(
    environment: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    install(1)
    stub = tmp_path / "stubs" / "libvendor.so.1"
    stub.parent.mkdir()
    compile_library(stub, 99)

    _, said = run(tmp_path, environment, *OURS, LD_LIBRARY_PATH=str(stub.parent))

    assert said.startswith("driver 1 ")
    _, said = run(tmp_path, environment, "sh", "-c", "echo $LD_LIBRARY_PATH; ls /opt/driver", LD_LIBRARY_PATH="/a:/b")
    assert said == "/opt/driver:/a:/b\nlibvendor.so.1\n"


def test_a_terminal_and_a_container_have_the_device_too(
    environment: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    install(3)
    heard, box = Heard(), create("process")
    parts = {"/opt/env": environment}
    sleep = Program(("sleep", "100"), {"PATH": "/usr/bin:/bin"}, tmp_path, Limits(64), parts=parts, devices=[DEVICE])
    box.start(sleep, heard)
    seen = bytearray()
    terminal = box.open_terminal(OURS, Size(80, 24), seen.extend)
    assert terminal.wait(SECONDS) == 0 and seen.startswith(b"driver 3 "), bytes(seen)
    assert box.end(SECONDS) == Ended(signal=SIGTERM)

    words = [sys.executable, "-m", "boxes.mounting", f"--device={DEVICE}", f"/opt/env={environment}", "--", *OURS]

    done = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, check=False
    )

    assert done.stdout.startswith("driver 3 "), done.stderr


def test_what_would_lie_in_the_environment_is_refused(environment: Path, install: PlayedVendor, tmp_path: Path) -> None:
    file = install(1)
    write(file, {"deviceNodes": [{"path": "/opt/env/card", "hostPath": "/dev/zero"}]}, {})

    with pytest.raises(
        BoxError, match=r"deviceNodes\[0\] is for /opt/env/card, and the program has other files in /opt/env"
    ):
        run(tmp_path, environment, "true")


@pytest.mark.parametrize("name", ["1", uuid(1)])
@pytest.mark.usefixtures("gpus")
def test_a_program_with_a_card_has_its_driver_and_device_where_they_are_described(
    environment: Path, install: PlayedVendor, tmp_path: Path, name: str
) -> None:
    install(4, f"nvidia.com/gpu={name}")

    with take_cards(Wanted(1)) as mine:  # card 1, which has more free memory
        said = run(tmp_path, environment, *OURS, device=None, wished=mine.devices)
        named = run(tmp_path, environment, *OURS, device=f"nvidia.com/gpu={name}", wished=mine.devices)

    assert said == named == (Ended(0), "driver 4 device b'\\x00\\x00\\x00'\n")
    (tmp_path / "driver").rename(tmp_path / "upgraded")
    with (
        take_cards(Wanted(1)) as mine,
        pytest.raises(
            BoxError, match=r"vendor.json: .* names .*, which is not there: an operator writes the file anew"
        ),
    ):
        run(tmp_path, environment, *OURS, device=None, wished=mine.devices)


@pytest.mark.usefixtures("gpus")
def test_a_program_with_cards_that_no_cdi_file_describes_runs_as_without_one(
    environment: Path, install: PlayedVendor, tmp_path: Path, cdi: Path
) -> None:
    file = install(4, "nvidia.com/gpu=0")
    with take_cards(Wanted(2)) as mine:
        ended, said = run(tmp_path, environment, *OURS, device=None, wished=mine.devices)
        assert ended == Ended(1) and "libvendor.so.1: cannot open shared object file" in said
    file.write_text("{")
    with take_cards(Wanted(1)) as mine:
        plain, heard = create("process"), Heard()
        plain.start(Program(("sh", "-c", "exit 143"), {}, tmp_path, Limits(64), wished=mine.devices), heard)
        assert plain.wait(SECONDS) == Ended(143)
        file.unlink()
        cdi.rmdir()
        assert run(tmp_path, environment, "true", device=None, wished=mine.devices) == (Ended(0), "")


@pytest.fixture
def in_docker(docker: DockerHere, tmp_path: Path) -> Iterator[Callable[..., tuple[Ended | None, str]]]:
    """in_docker(ARGV, VARIABLES): how a program in an image ends that has the device, and what it prints.

    An operator has settled for its broker where CDI files are.
    """

    def start(*argv: str, wished: Sequence[Sequence[str]] = (), **variables: str) -> tuple[Ended | None, str]:
        heard, box, image = Heard(), create("docker"), Image(docker.image, docker.fetch)
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        devices = () if wished else (DEVICE,)
        box.start(Program(argv, variables, folder, Limits(64), image, devices=devices, wished=wished), heard)
        return box.wait(SECONDS), (heard.stdout + heard.stderr).decode()

    def settle(*folders: Path) -> None:
        docker.broker.kill()
        docker.broker.communicate()
        docker.settle(cdi=[str(one) for one in folders])
        docker.start_broker()

    settle(tmp_path / "cdi")
    yield start
    settle()


def test_after_an_upgrade_of_the_driver_the_same_image_runs_on(
    install: PlayedVendor, in_docker: Callable[..., tuple[Ended | None, str]]
) -> None:
    for version in (1, 2):
        file = install(version, env=["CARD=vendor"])
        said = f"driver {version} device b'\\x00\\x00\\x00'\n"
        assert in_docker("python3", "-c", PROGRAM, CARD="mine") == (Ended(0), said)

    script = "echo $CARD $LD_LIBRARY_PATH; echo x > /usr/lib/vendor/libvendor.so.1.2 || echo refused"
    _, said = in_docker("bash", "-c", script, CARD="mine", LD_LIBRARY_PATH="/own")
    assert said.startswith("vendor /opt/driver:/own\n") and "Read-only file system" in said
    file.unlink()
    with pytest.raises(BoxError, match=f"no CDI file in .*cdi describes {DEVICE}"):
        in_docker("true")


def test_a_program_in_an_image_has_its_cards_as_devices_where_they_are_described(
    install: PlayedVendor, in_docker: Callable[..., tuple[Ended | None, str]]
) -> None:
    install(5, f"nvidia.com/gpu={uuid(0)}")

    found = in_docker("python3", "-c", PROGRAM, wished=Taken((Card(0, uuid=uuid(0)),)).devices)

    assert found == (Ended(0), "driver 5 device b'\\x00\\x00\\x00'\n")
    ended, said = in_docker("python3", "-c", PROGRAM, wished=Taken((Card(1, uuid=uuid(1)),)).devices)
    assert ended == Ended(1) and "libvendor.so.1: cannot open" in said


def test_boxes_of_docker_have_no_device_unless_an_operator_says_where_they_are_described(
    install: PlayedVendor, docker: DockerHere, tmp_path: Path
) -> None:
    install(1)
    asked = Program(["true"], {}, tmp_path, Limits(64), Image(docker.image, docker.fetch), devices=[DEVICE])

    with pytest.raises(BoxError, match="boxes of Docker get no devices here: an operator settles `cdi`"):
        create("docker").start(asked, Heard())
