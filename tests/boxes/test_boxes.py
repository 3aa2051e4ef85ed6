"""Boxes with real programs: output as it is printed, soft and hard ends, and nothing that stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from boxes import create
from boxes.box import Box, BoxError, Ended, Image, Program

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 90.0

OWNER = """
import sys, time
from pathlib import Path
import boxes
from boxes.box import Image, Limits, Program

image = Image(sys.argv[3], lambda archive: None) if sys.argv[3] else None
parts = {"/opt/env": Path(sys.argv[4])} if sys.argv[4] else {}
box = boxes.create(sys.argv[1])
program = Program(sys.argv[5:], {"PATH": "/usr/bin:/bin"}, Path(sys.argv[2]), Limits(64), image, parts)
box.start(program, lambda stream, content: (sys.stdout.buffer.write(content), sys.stdout.flush()))
box.wait()
"""
# A program with children in its own group, in a group and in a session of their own, one of them an orphan.
FAMILY = """
sleep 3600.25 &
setsid sleep 3600.25 &
(setsid setsid sleep 3600.25 &)
python3 -c 'import os; os.setpgid(0, 0); os.execvp("sleep", ["sleep", "3600.25"])' &
"""


class Heard:
    """What a box brought, by stream."""

    def __init__(self) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()

    def __call__(self, stream: str, content: bytes) -> None:
        getattr(self, stream).extend(content)


@pytest.fixture
def heard() -> Heard:
    return Heard()


def until(condition: Callable[[], T], seconds: float = SECONDS) -> T:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)
    return found


def of_folder(folder: Path) -> list[psutil.Process]:
    """Who works in a folder: all that came of a program that runs there."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd() == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def children(folder: Path) -> list[psutil.Process]:
    """Those of FAMILY that have become what they are."""
    found = []
    for process in of_folder(folder):
        with suppress(psutil.Error):
            if process.cmdline() == ["sleep", "3600.25"]:
                found.append(process)
    return found


def test_a_program_gets_its_words_its_variables_and_its_folder_and_no_shell_reads_them(
    box: Box, heard: Heard, program: Callable[..., Program], tmp_path: Path
) -> None:
    says = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['WORD'], sys.stdin.read()); sys.exit(3)"

    box.start(program("python3", "-c", says, "it's $HOME; *", "", WORD="höre"), heard)

    assert box.wait(SECONDS) == Ended(3)
    assert heard.stdout.decode() == f"[\"it's $HOME; *\", ''] {tmp_path} höre \n"


def test_output_is_heard_while_the_program_runs_also_without_an_end_of_line(
    box: Box, heard: Heard, program: Callable[..., Program]
) -> None:
    box.start(program("bash", "-c", "printf first; printf wrong >&2; read -t 60 < <(sleep 60); printf last"), heard)

    until(lambda: heard.stdout == b"first" and heard.stderr == b"wrong")
    assert box.wait(0.1) is None
    box.end(SECONDS)


def test_bytes_come_as_they_are_however_many(box: Box, heard: Heard, program: Callable[..., Program]) -> None:
    printed = bytes(range(256)) * 40_960
    says = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 40960); sys.stderr.buffer.write(b'\\xff\\0')"

    box.start(program("python3", "-c", says), heard)

    assert box.wait(SECONDS) == Ended(0)
    assert len(printed) == 10 * 2**20 and bytes(heard.stdout) == printed
    assert bytes(heard.stderr) == b"\xff\0"


def test_a_program_that_hears_sigterm_ends_softly(box: Box, heard: Heard, program: Callable[..., Program]) -> None:
    box.start(program("bash", "-c", "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.1; done"), heard)
    until(lambda: b"ready" in heard.stdout)

    assert box.end(SECONDS) == Ended(7)
    assert heard.stdout == b"ready\nsaved\n"


def test_one_that_does_not_is_ended_hardly_with_its_children(
    box: Box, heard: Heard, program: Callable[..., Program], tmp_path: Path
) -> None:
    box.start(program("bash", "-c", "trap '' TERM; (sleep 3600.25) & echo ready; sleep 3600.25"), heard)
    until(lambda: b"ready" in heard.stdout)
    began = time.monotonic()

    assert box.end(0.5) == Ended(signal=signal.SIGKILL)
    assert 0.5 <= time.monotonic() - began < SECONDS
    assert of_folder(tmp_path) == []


def test_what_a_program_leaves_behind_ends_with_it(
    box: Box, heard: Heard, program: Callable[..., Program], tmp_path: Path
) -> None:
    box.start(program("bash", "-c", f"{FAMILY}echo done"), heard)

    assert box.wait(SECONDS) == Ended(0)
    assert heard.stdout == b"done\n"
    assert of_folder(tmp_path) == []


def test_a_signal_is_told_from_an_exit_code(box: Box, heard: Heard, program: Callable[..., Program]) -> None:
    box.start(program("bash", "-c", "kill -SEGV $$"), heard)

    ended = box.wait(SECONDS)

    assert ended == Ended(signal=signal.SIGSEGV)
    assert (ended.code, ended.text) == (139, "was killed by SIGSEGV")


def test_signals_are_to_a_program_as_to_any_other(box: Box, heard: Heard, program: Callable[..., Program]) -> None:
    box.start(program("bash", "-c", "yes | head -n 1; echo ${PIPESTATUS[0]}; grep Sig /proc/self/status"), heard)

    assert box.wait(SECONDS) == Ended(0)
    lines = heard.stdout.decode().split("\n")
    assert lines[:2] == ["y", "141"], "`yes` ends by SIGPIPE"
    blocked = {line.split()[0]: int(line.split()[1], 16) for line in lines if line.startswith(("SigBlk", "SigIgn"))}
    assert blocked == {"SigBlk:": 0, "SigIgn:": 0}


def test_what_is_used_counts_all_that_came_of_the_program_until_it_ends(
    box: Box, heard: Heard, program: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    burn = "import os, time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    script = (
        f"python3 -c '{burn}'; head -c 3000000 /dev/zero > big; sync big; setsid sleep 60 & sleep 60 & echo done; wait"
    )
    box.start(program("bash", "-c", script), heard)
    until(lambda: heard.stdout == b"done\n")

    used = until(box.use)  # a Docker that is busy does not tell

    assert used is not None
    assert 0.4 < used.cpu_seconds < 20, "of a child that has ended"
    assert 0 < used.memory_bytes < 64 << 20
    assert used.processes >= 3
    assert used.written_bytes >= 0
    box.end(0)
    monkeypatch.setattr("boxes.docker.USE_SECONDS", 2 * SECONDS)
    begun = time.monotonic()
    assert box.use() is None
    assert time.monotonic() - begun < SECONDS, "nothing is waited for: nothing will be told"


def test_what_cannot_be_started_is_refused_in_a_sentence(
    case: str, kind: str, heard: Heard, program: Callable[..., Program], tmp_path: Path
) -> None:
    if case != "process":
        pytest.skip("what an image or an environment has, its own tests ask for")
    for name, text, mode in (
        ("closed.sh", "#!/bin/sh\n", 0o644),
        ("lost.sh", "#!/nowhere/sh\n", 0o755),
        ("words.txt", "words\n", 0o755),
        ("here.sh", "#!/bin/sh\n", 0o755),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    refused = {
        ("nowhere",): "there is no program nowhere",
        ("./nowhere",): "there is no program ./nowhere",
        ("here.sh",): "there is no program here.sh: write ./here.sh for the file that came with it",
        ("./closed.sh",): "./closed.sh is not executable",
        ("/usr",): "/usr is a folder",
        ("./lost.sh",): "./lost.sh cannot be started: the program that its first line names is not there",
        ("./words.txt",): "./words.txt cannot be started: it is not a program of this machine and has no line #!",
        ("true", "nul\0l"): "true cannot be started: embedded null byte",
        ("true", "x" * 200_000): "true cannot be started: its arguments and variables are longer than Linux allows",
    }

    for argv, sentence in refused.items():
        with pytest.raises(BoxError) as error:
            create(kind).start(program(*argv), heard)
        assert str(error.value) == sentence
    until(lambda: of_folder(tmp_path) == [])  # what could not become the program says so, and then ends
    assert heard.stdout + heard.stderr == b""


@pytest.fixture
def owner(kind: str, tmp_path: Path, image: Image | None, parts: dict[str, Path]) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a program in its box, in a process group of its own, as YARN's containers are."""
    script = f"trap '' TERM; {FAMILY}echo ready; while :; do sleep 0.1; done"
    what = [image.id if image else "", str(parts.get("/opt/env", ""))]
    words = [sys.executable, "-c", OWNER, kind, str(tmp_path), *what, "bash", "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, start_new_session=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == b"ready\n"
            until(lambda: len(children(tmp_path)) == 4)
            yield process
        finally:
            process.kill()
            for left in of_folder(tmp_path):
                with suppress(psutil.Error):
                    left.kill()


def test_an_owner_that_is_killed_leaves_nothing_of_its_program(owner: subprocess.Popen[bytes], tmp_path: Path) -> None:
    owner.kill()
    owner.wait()

    until(lambda: not of_folder(tmp_path))


def test_a_kill_of_the_owners_group_reaches_program_and_keeper(
    kind: str, owner: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    if kind != "process":
        pytest.skip("only processes are in their owner's group")
    own = children(tmp_path)
    assert [os.getpgid(one.pid) for one in own].count(owner.pid) == 1
    below = psutil.Process(owner.pid).children(recursive=True)
    assert set(own) <= set(below), "YARN counts the memory of all"

    os.killpg(owner.pid, signal.SIGKILL)
    owner.wait()

    until(lambda: not of_folder(tmp_path))
    until(lambda: not any(one.is_running() for one in below))


def test_a_keeper_that_is_killed_takes_its_program_along(
    kind: str, heard: Heard, program: Callable[..., Program], tmp_path: Path
) -> None:
    if kind != "process":
        pytest.skip("only processes have a keeper")
    box = create(kind)
    box.start(program("sleep", "3600.25"), heard)
    until(lambda: of_folder(tmp_path))

    of_folder(tmp_path)[0].parent().kill()  # type: ignore[union-attr]

    assert box.wait(SECONDS) == Ended(signal=signal.SIGKILL)
    until(lambda: of_folder(tmp_path) == [])  # the kernel lets go of the keeper's pipes before it kills its program


def test_a_box_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(BoxError, match=r"there is no box 'chest': choose one of .*process"):
        create("chest")
