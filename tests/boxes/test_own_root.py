"""Programs whose environment has a root: they see it, their own folder, and nothing else of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from boxes import create
from boxes.box import Ended, Limits, Program
from boxes.mounting import wrap
from boxes.own_root import PLACE
from tests.boxes.test_boxes import SECONDS, Heard, of_folder, until

ROOT = Path(__file__).resolve().parents[2]


def run(parts: dict[str, Path], folder: Path, script: str) -> tuple[Ended | None, list[str]]:
    heard, box = Heard(), create("process")
    box.start(Program(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, folder, Limits(64), parts=parts), heard)
    return box.wait(SECONDS), (heard.stdout + heard.stderr).decode().splitlines()


def test_a_program_sees_the_root_other_parts_and_its_folder(root: Path, part: Path, tmp_path: Path) -> None:
    ended, said = run(
        {"/": root, "/opt/env": part}, tmp_path, "cat /etc/issue /opt/env/word; ls -A /; echo kept > here; ls /tmp"
    )

    expected = {".nodewise", "bin", "dev", "etc", "opt", "proc", "tmp", "usr", tmp_path.parts[1]}
    assert ended == Ended(0), said
    assert said[:2] == ["another system", "found"]
    assert set(said[2:-1]) - {"lib", "lib64"} == expected
    assert said[-1] == tmp_path.parts[2], "of /tmp it sees its own folder alone"
    assert (tmp_path / "here").read_text() == "kept\n"
    assert not PLACE.exists(), "of this machine nothing changes"


def test_users_have_the_names_of_this_machine(root: Path, tmp_path: Path) -> None:
    _, said = run({"/": root}, tmp_path, "cat /etc/passwd")

    assert said == Path("/etc/passwd").read_text().splitlines()


def test_the_root_is_read_only_and_the_program_may_no_more_than_before(root: Path, tmp_path: Path) -> None:
    script = "id -u; grep CapEff /proc/self/status; touch /usr/more /etc/more /more; ls /proc/1/root"
    ended, said = run({"/": root}, tmp_path, script)

    assert not PLACE.exists(), "nor is anything made on this machine"

    assert said[:2] == [str(os.getuid()), "CapEff:\t" + "0" * 16]
    assert sum("Read-only file system" in line for line in said) == 3, said
    assert ended is not None and ended != Ended(0), "what lies outside of the root cannot be reached by /proc"


def test_a_folder_outside_of_tmp_is_seen(root: Path) -> None:
    argv = wrap(["sh", "-c", "ls /var/../etc/issue; ls -d ."], {"/": root}, Path("/var/lib"))

    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert done.stdout == "/var/../etc/issue\n.\n", done.stderr


def test_a_signal_reaches_the_program_and_nothing_is_left(root: Path, tmp_path: Path) -> None:
    script = "trap 'echo bye > last; exit 3' TERM; echo > ready; while :; do sleep 0.05; done"
    argv = wrap(["sh", "-c", script], {"/": root}, tmp_path)
    with subprocess.Popen(argv, cwd=tmp_path, start_new_session=True) as outer:
        until(lambda: (tmp_path / "ready").exists())
        os.killpg(outer.pid, signal.SIGTERM)
        assert outer.wait(SECONDS) == 3
    assert (tmp_path / "last").read_text() == "bye\n"

    with subprocess.Popen(wrap(["sleep", "3600.5"], {"/": root}, tmp_path), cwd=tmp_path) as outer:
        time.sleep(0.1)
        outer.kill()
    until(lambda: not of_folder(tmp_path))


def test_a_container_sees_what_its_links_lead_to_and_folders_by_name(root: Path, part: Path, tmp_path: Path) -> None:
    container, cache, settings = tmp_path / "container", tmp_path / "cache", tmp_path / "settings"
    for one in (container, cache, settings / "real"):
        one.mkdir(parents=True)
    (cache / "code").write_text("the code\n")
    (cache / "other").write_text("another's\n")
    (settings / "real/site").write_text("the site\n")
    (settings / "link").symlink_to("real")
    (container / "code").symlink_to("../cache/code")
    (container / "other").symlink_to(cache / "other")
    (container / "own").write_text("its own\n")
    words = [f"--see={name}" for name in ("code", "own", settings / "link")]
    parts = [f"/={root}", f"/opt/env={part}"]
    begin = [sys.executable, "-m", "boxes.mounting", *words]
    program = ["sh", "-c", f"cat code own {settings}/link/site /opt/env/word; cat other; echo x > code; ls {tmp_path}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [*begin, *parts, "--", *program], capture_output=True, text=True, env=environment, cwd=container, check=False
    )

    assert done.stdout == "the code\nits own\nthe site\nfound\ncache\ncontainer\nsettings\n", done.stderr
    assert "can't open 'other'" in done.stderr and "can't create code: Read-only file system" in done.stderr
    plain = [*begin, f"/opt/env={part}", "--", "cat", "code", "other"]
    done = subprocess.run(plain, capture_output=True, text=True, env=environment, cwd=container, check=False)
    assert done.stdout == "the code\nanother's\n", "without a root it sees all"
