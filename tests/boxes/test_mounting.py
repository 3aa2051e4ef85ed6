"""Programs that see squashfs files as folders: without root, with no more rights than before, and with nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from boxes import create
from boxes.box import BoxError, Ended, Limits, Program
from boxes.mounting import wrap
from tests.boxes.test_boxes import SECONDS, Heard, of_folder, until

ROOT = Path(__file__).resolve().parents[2]


def run(part: Path, folder: Path, script: str, at: str = "/opt/env") -> tuple[Ended | None, str]:
    """How a script of bash ends that sees the part, and what it prints."""
    heard, box = Heard(), create("process")
    box.start(Program(["bash", "-c", script], {"PATH": "/usr/bin:/bin"}, folder, Limits(64), parts={at: part}), heard)
    return box.wait(SECONDS), (heard.stdout + heard.stderr).decode()


@pytest.mark.parametrize("at", ["/opt/env", "/opt/env/deeper/still", "/new", "/usr/local/lib/env"])
def test_a_part_is_seen_at_its_folder_and_all_else_as_before(part: Path, tmp_path: Path, at: str) -> None:
    before = sorted({*os.listdir("/"), at.split("/")[1]})  # noqa: PTH208

    ended, said = run(part, tmp_path, f"cat {at}/word; ls -A /; echo kept > here; cat here", at)

    assert ended == Ended(0), said
    assert said.split("\n") == ["found", *sorted(before, key=lambda name: name.encode()), "kept", ""]
    assert not Path(at).exists(), "of this machine nothing changes"
    assert (tmp_path / "here").read_text() == "kept\n"


def test_the_program_is_who_it_was_and_may_no_more(part: Path, tmp_path: Path) -> None:
    script = """
    id -u; id -g; grep CapEff /proc/self/status | tr -dc 0-9; echo; env | grep -c NODEWISE
    touch /opt/env/more || mount -t tmpfs none /mnt || umount /opt/env || umount /proc || echo refused
    """

    ended, said = run(part, tmp_path, script)

    lines = said.split("\n")
    assert lines[:4] == [str(os.getuid()), str(os.getgid()), "0" * 16, "0"]
    assert "refused" in lines and ended == Ended(0), said


def test_nothing_mounts_on_when_the_program_has_ended(part: Path, tmp_path: Path) -> None:
    run(part, tmp_path, "cat /opt/env/word")

    until(lambda: not subprocess.run(["pgrep", "-f", str(part)], capture_output=True, check=False).stdout)
    assert str(part) not in Path("/proc/mounts").read_text()


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("at", ["/opt/env", "/"])
def test_a_program_that_is_still_starting_ends_softly(
    part: Path, root: Path, tmp_path: Path, at: str, number: int
) -> None:
    box = create("process")
    argv, parts = ["sleep", "3600.25"], {at: root if at == "/" else part}
    box.start(Program(argv, {"PATH": "/usr/bin:/bin"}, tmp_path, Limits(64), parts=parts), Heard())
    time.sleep(number * 0.01)

    assert box.end(grace=60.0) == Ended(signal=signal.SIGTERM)


def test_what_is_not_there_or_no_part_is_told(part: Path, tmp_path: Path) -> None:
    with pytest.raises(BoxError, match="a part of its environment, is not there"):
        run(tmp_path / "lost.sqfs", tmp_path, "true")

    (tmp_path / "bad.sqfs").write_text("no part")
    ended, said = run(tmp_path / "bad.sqfs", tmp_path, "true")
    assert ended == Ended(125) and "squashfs" in said


def test_a_container_becomes_its_program(part: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "boxes.mounting", f"/opt/env={part}", "--", "bash", "-c", "cat $0; exit 7"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [*argv, "/opt/env/word"], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )

    assert (done.returncode, done.stdout) == (7, "found\n"), done.stderr
    lost = subprocess.run(
        [word.replace(str(part), "lost") for word in argv], capture_output=True, text=True, env=environment, check=False
    )
    assert lost.returncode == 125 and "lost, a part of its environment, is not there" in lost.stderr


@pytest.mark.parametrize("number", range(10))
def test_nothing_is_left_whenever_what_stands_between_is_killed(part: Path, tmp_path: Path, number: int) -> None:
    argv = wrap(["sleep", "3600.25"], {"/opt/env": part}, tmp_path)
    with subprocess.Popen(argv, cwd=tmp_path) as outer:
        time.sleep(number * 0.008)
        outer.kill()

    until(lambda: not of_folder(tmp_path))
