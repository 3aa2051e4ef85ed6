"""Devices and drivers of the node in an environment with a root of its own, which has none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from boxes import create
from boxes.box import BoxError, Ended, Limits, Program
from boxes.gpus.cards import Wanted
from boxes.gpus.taking import take_cards
from boxes.mounting import become
from boxes.root_places import find_place
from boxes.terminal import Size
from environments.squash import squash, unsquash
from tests.boxes.played_gpus import uuid
from tests.boxes.played_vendor import DEVICE, PlayedVendor, write
from tests.boxes.test_boxes import SECONDS, Heard

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  void *driver = dlopen("libvendor.so.1", RTLD_NOW);
  FILE *device = fopen("/dev/vendor0", "rb");
  if (!driver) {
    printf("%s\n", dlerror());
    return 1;
  }
  printf("driver %d device %d\n", ((int (*)(void))dlsym(driver, "vendor_version"))(), device ? fgetc(device) : -1);
}
"""
"""Knows the library by its soname alone."""
MINIMAL = {"full", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero"}
LINKS = {"core", "fd", "stdin", "stdout", "stderr"}


@pytest.fixture
def with_program(root: Path, tmp_path: Path) -> Path:
    """The root, with the program at /usr/bin/ours, and links from one folder to another as systems have them."""
    tree, source = tmp_path / "tree", tmp_path / "ours.c"
    unsquash(root, tree)
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-o", tree / "usr/bin/ours", source], check=True)
    (tree / "var").mkdir()
    (tree / "var/run").symlink_to("/run")
    (tree / "run").mkdir()
    (tree / "run/own").write_text("the root's\n")
    squash(tree, tmp_path / "with_program.sqfs")
    return tmp_path / "with_program.sqfs"


def run(
    folder: Path,
    root: Path,
    *argv: str,
    device: str | None = DEVICE,
    wished: Sequence[Sequence[str]] = (),
    **variables: str,
) -> tuple[Ended | None, str]:
    """How a program in the root ends that has a device and wished ones, and what it prints."""
    heard, box, work = Heard(), create("process"), folder / "work"
    work.mkdir(exist_ok=True)
    devices = (device,) if device else ()
    environment = {"PATH": "/usr/bin:/bin", **variables}
    box.start(Program(argv, environment, work, Limits(64), parts={"/": root}, devices=devices, wished=wished), heard)
    return box.wait(SECONDS), (heard.stdout + heard.stderr).decode()


def test_after_an_upgrade_of_the_driver_the_same_root_runs_on(
    with_program: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    before = with_program.read_bytes()
    install(1)
    assert run(tmp_path, with_program, "ours") == (Ended(0), "driver 1 device 0\n")

    file = install(2)
    assert run(tmp_path, with_program, "ours") == (Ended(0), "driver 2 device 0\n")
    assert with_program.read_bytes() == before

    ended, said = run(tmp_path, with_program, "ours", device=None)
    assert ended == Ended(1) and "libvendor.so.1: cannot open shared object file" in said
    file.unlink()
    with pytest.raises(BoxError, match=f"no CDI file in .*cdi describes {DEVICE}"):
        run(tmp_path, with_program, "ours")


def test_a_program_has_the_devices_that_it_asked_for_and_no_others_of_the_node(
    root: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    file = install(1)
    nodes = [{"path": "/dev/cards/0", "hostPath": "/dev/full"}, {"path": "/srv/card/0", "hostPath": "/dev/zero"}]
    write(file, {"deviceNodes": nodes}, {"env": ["CARD=vendor"]})
    script = (
        "echo $CARD; ls /dev; read -n 1 one < /srv/card/0 && echo read; echo x > /dev/cards/0; echo kept > /dev/null"
    )

    _, said = run(tmp_path, root, "sh", "-c", script, CARD="mine")
    _, without = run(tmp_path, root, "ls", "/dev", device=None)

    card, *lines = said.split("\n")
    assert card == "vendor" and set(lines[: lines.index("zero") + 1]) == {"cards", *MINIMAL, *LINKS}
    assert said.endswith("\nread\nsh: write error: No space left on device\n")
    assert set(without.split()) == {*MINIMAL, *LINKS}


def test_a_device_file_of_any_folder_of_the_node_works(root: Path, install: PlayedVendor, tmp_path: Path) -> None:
    file = install(1)
    try:
        os.mknod(tmp_path / "card", 0o020666, os.makedev(1, 5))
        (tmp_path / "card").open("rb").close()
    except PermissionError:
        pytest.skip("this user may make no device files here")
    write(file, {"deviceNodes": [{"path": "/dev/vendor0", "hostPath": str(tmp_path / "card")}]}, {})

    ended, said = run(tmp_path, root, "sh", "-c", "echo kept > /dev/vendor0")

    assert (ended, said) == (Ended(0), "")


def test_files_of_a_driver_lie_where_links_of_the_root_lead_and_hide_nothing(
    with_program: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    file = install(1)
    (tmp_path / "files").mkdir()
    (tmp_path / "files/firmware").write_text("the driver's\n")
    mounts = [
        {"hostPath": str(tmp_path / "files/firmware"), "containerPath": "/lib/vendor/firmware"},
        {"hostPath": str(tmp_path / "files/firmware"), "containerPath": "/etc/issue"},
        {"hostPath": str(tmp_path / "files"), "containerPath": "/var/run/vendor"},
        {"hostPath": str(tmp_path / "files"), "containerPath": "/srv/rw", "options": ["rw"]},
    ]
    write(file, {}, {"mounts": mounts})
    script = """
    cat /usr/lib/vendor/firmware /etc/issue /run/vendor/firmware /run/own; echo kept > /srv/rw/new
    for one in /lib/vendor/firmware /run/vendor/new /lib/vendor/new /etc/issue; do echo x > $one; done
    """

    _, said = run(tmp_path, with_program, "sh", "-c", script)

    assert said.startswith("the driver's\n" * 3 + "the root's\n"), said
    assert said.count("Read-only file system") == 4
    assert (tmp_path / "files/new").read_text() == "kept\n"
    assert (tmp_path / "files/firmware").read_text() == "the driver's\n"


@pytest.mark.parametrize("path", ["{work}/card", "/opt/env/card", "/.nodewise/env"])
def test_what_would_lie_in_other_files_of_the_program_is_refused(
    root: Path, part: Path, install: PlayedVendor, tmp_path: Path, path: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    write(install(1), {"deviceNodes": [{"path": path.format(work=work), "hostPath": "/dev/zero"}]}, {})
    parts = {"/": root, "/opt/env": part}
    asked = Program(["true"], {}, work, Limits(64), parts=parts, devices=[DEVICE])

    with pytest.raises(BoxError, match=r"deviceNodes\[0\] is for .*, and the program has other files in "):
        create("process").start(asked, Heard())
    assert not list(work.iterdir())


def test_a_terminal_and_a_container_have_the_device_too(
    with_program: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    install(3)
    heard, box, parts = Heard(), create("process"), {"/": with_program}
    sleep = Program(("sleep", "100"), {"PATH": "/usr/bin:/bin"}, tmp_path, Limits(64), parts=parts, devices=[DEVICE])
    box.start(sleep, heard)
    seen = bytearray()
    terminal = box.open_terminal(["sh", "-c", "ours; echo typed > /dev/tty"], Size(80, 24), seen.extend)
    assert terminal.wait(SECONDS) == 0 and seen == b"driver 3 device 0\r\ntyped\r\n", bytes(seen)
    box.end(0)

    words = [sys.executable, "-m", become.__module__, f"--device={DEVICE}", f"/={with_program}", "--", "ours"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)

    assert done.stdout == "driver 3 device 0\n", done.stderr


@pytest.mark.usefixtures("gpus")
def test_a_program_with_a_card_has_its_driver_and_device_where_they_are_described(
    with_program: Path, install: PlayedVendor, tmp_path: Path
) -> None:
    file = install(4, f"nvidia.com/gpu={uuid(1)}")

    with take_cards(Wanted(1)) as mine:  # card 1, which has more free memory
        assert run(tmp_path, with_program, "ours", device=None, wished=mine.devices) == (
            Ended(0),
            "driver 4 device 0\n",
        )
        file.unlink()
        ended, said = run(tmp_path, with_program, "ours", device=None, wished=mine.devices)

    assert ended == Ended(1) and "libvendor.so.1: cannot open shared object file" in said


def test_a_path_leads_where_the_links_of_a_root_say(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "usr/lib/up").symlink_to("../../var/./x/")
    (tmp_path / "usr/lib/out").symlink_to("../../../../etc")
    (tmp_path / "run").symlink_to("/lib/up")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("/one")

    assert find_place(tmp_path, "/lib/a/b") == "/usr/lib/a/b"
    assert find_place(tmp_path, "/run/socket") == "/var/x/socket"
    assert find_place(tmp_path, "/lib/out/passwd") == "/etc/passwd", "never out of the root"
    with pytest.raises(OSError, match="symbolic links: '/one/file'"):
        find_place(tmp_path, "/one/file")
