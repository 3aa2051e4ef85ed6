"""What may run and what runs then: commands turned into programs, and real processes started from them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from collectors.agent.run import sealed
from collectors.agent.run.trust import Program, Pushed, Refused, Trust


def manifest_of(directory: Path) -> Pushed:
    files = [file for file in directory.rglob("*") if file.is_file() and file.name != "manifest.json"]
    digests = {str(file.relative_to(directory)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    (directory / "manifest.json").write_text(json.dumps(digests))
    return Pushed.load(directory)


@pytest.fixture
def pushed(tmp_path: Path) -> Pushed:
    directory = tmp_path / "pushed"
    files = {
        "scripts/a.sh": '. "$LIB"; echo "$said $1 $2 $PROGRAM_DIR"',
        "scripts/_lib.sh": "said=library",
        "processors/p.py": "import sys, carried; print(carried.WORD, sys.argv[1:], sys.path[0])",
    }
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text + "\n")
    with zipfile.ZipFile(directory / "agent.pyz", "w") as archive:
        archive.writestr("carried.py", "WORD = 'carried'\n")
    return manifest_of(directory)


@contextmanager
def trusting(pushed: Pushed, *allow: Path) -> Iterator[Trust]:
    trust = Trust(pushed, [str(directory) for directory in allow])
    yield trust
    trust.close()


def refusal(cmd: str, pushed: Pushed, *allow: Path, sha256: str | None = None) -> str:
    with trusting(pushed, *allow) as trust, pytest.raises(Refused) as refused:
        trust.program(cmd, sha256)
    return str(refused.value)


def printed(program: Program) -> str:
    environment = {"PATH": os.environ["PATH"], **program.environment}
    done = subprocess.run(
        program.argv, env=environment, pass_fds=program.descriptors, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def output(cmd: str, pushed: Pushed, *allow: Path, sha256: str | None = None) -> str:
    with trusting(pushed, *allow) as trust:
        return printed(trust.program(cmd, sha256))


def program(directory: Path, name: str = "own.sh", text: str = '#!/bin/sh\necho "1 $1"\n') -> Path:
    directory.mkdir(exist_ok=True)
    file = directory / name
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_a_program_that_was_not_pushed_takes_arguments_only_with_its_checksum(pushed: Pushed, tmp_path: Path) -> None:
    file = program(tmp_path / "bin")

    assert output(str(file), pushed, file.parent) == "1"
    assert "add its --sha256" in refusal(f"{file} now", pushed, file.parent)
    checked = hashlib.sha256(file.read_bytes()).hexdigest()
    assert output(f"{file} now", pushed, file.parent, sha256=checked) == "1 now"


def test_a_pushed_script_runs_with_its_arguments_its_library_and_no_shell_around_it(pushed: Pushed) -> None:
    assert (
        output("scripts/a.sh '/data dir' $HOME;ls", pushed) == f"library /data dir $HOME;ls {pushed.directory}/scripts"
    )


def test_a_processor_runs_with_the_agent_s_own_python_and_modules(pushed: Pushed) -> None:
    word, arguments, path = output("processors/p.py 1", pushed).split()

    assert (word, arguments) == ("carried", "['1']")
    assert path.startswith("/proc/self/fd/")
    with trusting(pushed) as trust:
        assert trust.program("processors/p.py").argv[:3] == (sys.executable, "-P", "-S")


def test_own_programs_run_by_their_first_line_and_python_ones_with_the_agent_s_modules(
    pushed: Pushed, tmp_path: Path
) -> None:
    own = program(tmp_path / "bin", "own.py", "import carried, os\nprint(carried.WORD, os.environ['PROGRAM_DIR'])\n")
    other = program(tmp_path / "bin", "own", f"#!{sys.executable}\nimport carried\nprint(carried.WORD)\n")
    (tmp_path / "bin" / "true").write_bytes(Path("/bin/true").read_bytes())
    (tmp_path / "bin" / "true").chmod(0o755)

    assert output(str(own), pushed, own.parent) == f"carried {own.parent}"
    assert output(str(other), pushed, own.parent) == "carried"
    assert output(str(tmp_path / "bin" / "true"), pushed, own.parent) == ""


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
    with trusting(pushed) as trust:
        trust.program(cmd)
        (pushed.directory / changed).write_text("echo evil\n")

        with pytest.raises(Refused, match=f"{changed} has changed"):
            trust.program(cmd)


def test_a_pushed_file_swapped_for_a_link_is_refused(pushed: Pushed, tmp_path: Path) -> None:
    same = tmp_path / "same.sh"
    (pushed.directory / "scripts/a.sh").rename(same)
    (pushed.directory / "scripts/a.sh").symlink_to(same)

    assert "has changed" in refusal("scripts/a.sh", pushed)


def test_a_missing_pushed_file_is_refused(pushed: Pushed) -> None:
    (pushed.directory / "scripts/a.sh").unlink()

    assert "No such file" in refusal("scripts/a.sh", pushed)


def written_over(file: Path) -> None:
    file.write_text("echo evil\n")


def replaced(file: Path) -> None:
    file.rename(file.with_name("former"))
    file.write_text("echo evil\n")


def linked(file: Path) -> None:
    evil = file.with_name("evil.sh")
    evil.write_text("echo evil\n")
    file.unlink()
    file.symlink_to(evil)


@pytest.mark.parametrize("swap", [written_over, replaced, linked])
@pytest.mark.parametrize("swapped", ["scripts/a.sh", "scripts/_lib.sh"])
def test_what_is_swapped_after_the_check_runs_as_it_was_checked(
    pushed: Pushed, swapped: str, swap: Callable[[Path], None]
) -> None:
    with trusting(pushed) as trust:
        checked = trust.program("scripts/a.sh 1")
        swap(pushed.directory / swapped)

        assert printed(checked).startswith("library 1")


def test_a_swap_between_the_check_of_a_place_and_the_reading_changes_nothing(
    pushed: Pushed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = program(tmp_path / "bin")
    read = os.read

    def swap_and_read(descriptor: int, size: int) -> bytes:
        if file.exists():
            file.unlink()
            file.symlink_to("/bin/date")
        return read(descriptor, size)

    monkeypatch.setattr(os, "read", swap_and_read)
    with trusting(pushed, file.parent) as trust:
        checked = trust.program(str(file))
        monkeypatch.undo()

        assert file.is_symlink()
        assert printed(checked) == "1"


def test_a_copy_can_be_changed_by_nobody(pushed: Pushed) -> None:
    with trusting(pushed) as trust:
        checked = trust.program("scripts/a.sh")

        with pytest.raises(PermissionError):
            os.write(checked.descriptors[0], b"evil")
        with pytest.raises(PermissionError):
            Path(f"/proc/self/fd/{checked.descriptors[0]}").write_text("evil")
        with pytest.raises(PermissionError):
            os.ftruncate(checked.descriptors[0], 0)


def test_an_unchanged_file_is_read_once(pushed: Pushed, monkeypatch: pytest.MonkeyPatch) -> None:
    with trusting(pushed) as trust:
        first = trust.program("scripts/a.sh")
        monkeypatch.setattr(os, "read", None)

        assert trust.program("scripts/a.sh") == first


def held(folder: Path) -> int:
    """How many copies in memory and files below a folder are open; what threads of others have open changes."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(one.readlink()))
    return sum(one.startswith(("/memfd:", f"{folder}/")) for one in found)


def test_copies_of_files_that_changed_or_are_many_are_given_back(pushed: Pushed, tmp_path: Path) -> None:
    before = held(tmp_path)
    file = program(tmp_path / "bin")
    with trusting(pushed, file.parent) as trust:
        for number in range(sealed.KEPT_COPIES + 40):
            program(file.parent, f"own{number % (sealed.KEPT_COPIES + 20)}.sh", f"#!/bin/sh\necho {number}\n")
            trust.program(str(file.parent / f"own{number % (sealed.KEPT_COPIES + 20)}.sh"))

        assert held(tmp_path) <= before + sealed.KEPT_COPIES


def test_copies_take_no_more_memory_together_than_two_of_the_largest(
    pushed: Pushed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed, "KEPT_BYTES", 1000)
    before = held(tmp_path)
    text = "#!/bin/sh\necho {}\n#" + "x" * 380
    with trusting(pushed, tmp_path / "bin") as trust:
        for number in range(5):
            file = program(tmp_path / "bin", f"own{number}.sh", text.format(number))
            assert printed(trust.program(str(file))) == str(number)

        assert held(tmp_path) == before + 3  # the last two, and the small agent.pyz


def test_an_absolute_command_needs_an_allowed_directory(pushed: Pushed, tmp_path: Path) -> None:
    file = program(tmp_path / "bin")

    assert f"--allow {file.parent}" in refusal(str(file), pushed)
    assert output(str(file), pushed, file.parent) == "1"


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
    assert output(str(file), pushed, file.parent) == "1"
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

    assert output(str(file), pushed, file.parent, sha256=digest.upper()) == "1"
    assert output("scripts/a.sh", pushed, sha256=pushed.manifest["scripts/a.sh"])
    assert "SHA-256 differs" in refusal(str(file), pushed, file.parent, sha256="0" * 64)
    assert "SHA-256 differs" in refusal("scripts/a.sh", pushed, sha256="0" * 64)


def test_a_file_that_cannot_be_executed_or_is_none_is_refused_with_the_remedy(pushed: Pushed, tmp_path: Path) -> None:
    file = program(tmp_path / "bin")
    file.chmod(0o644)

    assert f"chmod +x {file}" in refusal(str(file), pushed, file.parent)
    assert "No such file" in refusal(f"{file}x", pushed, file.parent)
    assert "not a file" in refusal(str(file.parent), pushed, tmp_path)
    os.mkfifo(tmp_path / "bin" / "pipe")
    assert "not a file" in refusal(f"{file.parent}/pipe", pushed, file.parent)


def test_a_link_into_an_allowed_directory_runs_what_it_leads_to(pushed: Pushed, tmp_path: Path) -> None:
    file = program(tmp_path / "bin")
    (tmp_path / "link.sh").symlink_to(file)

    assert output(f"{tmp_path}/link.sh", pushed, file.parent) == "1"


def test_a_file_too_large_to_copy_is_refused(pushed: Pushed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "COPY_LIMIT", 5)

    assert "more than 5 bytes" in refusal(str(program(tmp_path / "bin")), pushed, tmp_path / "bin")
