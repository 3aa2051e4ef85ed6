from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from collectors.agent.trust import Pushed, Refused, trusted_argv


@pytest.fixture
def pushed(tmp_path: Path) -> Pushed:
    directory = tmp_path / "pushed"
    files = {"scripts/a.sh": "#!/bin/sh\n", "scripts/_lib.sh": "", "processors/p.py": "", "agent.pyz": "zip"}
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    manifest = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return Pushed.load(directory)


def refusal(cmd: str, pushed: Pushed, *allow: Path, sha256: str | None = None) -> str:
    with pytest.raises(Refused) as refused:
        trusted_argv(cmd, sha256, pushed, [str(directory) for directory in allow])
    return str(refused.value)


def program(directory: Path, name: str = "own.sh") -> Path:
    directory.mkdir(exist_ok=True)
    file = directory / name
    file.write_text("#!/bin/sh\necho 1\n")
    file.chmod(0o755)
    return file


def test_a_pushed_file_runs_with_its_arguments_and_no_shell(pushed: Pushed) -> None:
    argv = trusted_argv("scripts/a.sh '/data dir' $HOME;ls", None, pushed, [])

    assert argv == [str(pushed.directory / "scripts/a.sh"), "/data dir", "$HOME;ls"]


def test_a_processor_runs_with_the_agent_s_own_python(pushed: Pushed, tmp_path: Path) -> None:
    own = program(tmp_path / "bin", "own.py")

    argv = trusted_argv("processors/p.py 1", None, pushed, [])
    assert argv == [sys.executable, "-S", str(pushed.directory / "processors/p.py"), "1"]
    assert trusted_argv(f"{own} 1", None, pushed, [str(own.parent)]) == [sys.executable, str(own), "1"]


@pytest.mark.parametrize(
    "cmd",
    ["scripts/../scripts/a.sh", "../pushed/scripts/a.sh", "./scripts/a.sh", "scripts", "manifest.json", "sh", "~/a"],
)
def test_only_names_of_the_manifest_are_pushed_files(pushed: Pushed, cmd: str) -> None:
    assert "not among the files pushed" in refusal(cmd, pushed)


@pytest.mark.parametrize("cmd", ["", "   ", "''", "scripts/a.sh 'open"])
def test_a_command_that_is_none_is_refused(pushed: Pushed, cmd: str) -> None:
    assert "command" in refusal(cmd, pushed)


@pytest.mark.parametrize(
    ("changed", "cmd"),
    [
        ("scripts/a.sh", "scripts/a.sh"),
        ("scripts/_lib.sh", "scripts/a.sh"),
        ("agent.pyz", "processors/p.py"),
    ],
)
def test_a_changed_file_is_refused_and_so_is_what_would_load_it(pushed: Pushed, changed: str, cmd: str) -> None:
    trusted_argv(cmd, None, pushed, [])
    (pushed.directory / changed).write_text("#!/bin/sh\necho evil\n")

    assert f"{changed} has changed" in refusal(cmd, pushed)


def test_a_pushed_file_swapped_for_a_link_is_refused(pushed: Pushed, tmp_path: Path) -> None:
    same = tmp_path / "same.sh"
    (pushed.directory / "scripts/a.sh").rename(same)
    (pushed.directory / "scripts/a.sh").symlink_to(same)

    assert "has changed" in refusal("scripts/a.sh", pushed)


def test_a_missing_pushed_file_is_refused(pushed: Pushed) -> None:
    (pushed.directory / "scripts/a.sh").unlink()

    assert "cannot be read" in refusal("scripts/a.sh", pushed)


def test_an_absolute_command_needs_an_allowed_directory(pushed: Pushed, tmp_path: Path) -> None:
    file = program(tmp_path / "bin")

    assert f"--allow {file.parent}" in refusal(str(file), pushed)
    assert trusted_argv(f"{file} x", None, pushed, [str(file.parent)]) == [str(file), "x"]


def test_an_absolute_command_cannot_climb_out_of_its_directory(pushed: Pushed, tmp_path: Path) -> None:
    program(tmp_path / "bin")
    outside = program(tmp_path / "elsewhere")
    (tmp_path / "bin" / "link.sh").symlink_to(outside)

    assert "no directory allowed" in refusal(f"{tmp_path}/bin/../elsewhere/own.sh", pushed, tmp_path / "bin")
    assert "no directory allowed" in refusal(f"{tmp_path}/bin/link.sh", pushed, tmp_path / "bin")


def test_a_name_that_only_begins_like_an_allowed_directory_is_outside(pushed: Pushed, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()

    assert "no directory allowed" in refusal(str(program(tmp_path / "binary")), pushed, tmp_path / "bin")


@pytest.mark.parametrize("opened", ["bin", "bin/own.sh"])
def test_what_others_can_write_is_refused(pushed: Pushed, tmp_path: Path, opened: str) -> None:
    file = program(tmp_path / "bin")
    (tmp_path / opened).chmod(0o775)

    assert "can be changed by other users" in refusal(str(file), pushed, file.parent)


def test_a_directory_above_that_others_can_write_is_refused_unless_it_is_sticky(pushed: Pushed, tmp_path: Path) -> None:
    (tmp_path / "above").mkdir()
    file = program(tmp_path / "above" / "bin")
    (tmp_path / "above").chmod(0o1777)
    assert trusted_argv(str(file), None, pushed, [str(file.parent)])
    (tmp_path / "above").chmod(0o777)

    assert f"chmod go-w {tmp_path}/above" in refusal(str(file), pushed, file.parent)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_is_refused(pushed: Pushed, tmp_path: Path) -> None:
    file = program(tmp_path / "bin")
    os.chown(file, 12345, 12345)

    assert "can be changed by other users" in refusal(str(file), pushed, file.parent)


def test_a_registered_digest_holds_for_both_kinds_of_command(pushed: Pushed, tmp_path: Path) -> None:
    file = program(tmp_path / "bin")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()

    assert trusted_argv(str(file), digest.upper(), pushed, [str(file.parent)])
    assert trusted_argv("scripts/a.sh", pushed.manifest["scripts/a.sh"], pushed, [])
    assert "SHA-256 differs" in refusal(str(file), pushed, file.parent, sha256="0" * 64)
    assert "SHA-256 differs" in refusal("scripts/a.sh", pushed, sha256="0" * 64)


def test_a_file_that_cannot_be_executed_or_is_none_is_refused_with_the_remedy(pushed: Pushed, tmp_path: Path) -> None:
    file = program(tmp_path / "bin")
    file.chmod(0o644)

    assert f"chmod +x {file}" in refusal(str(file), pushed, file.parent)
    assert "no file" in refusal(f"{file}x", pushed, file.parent)
