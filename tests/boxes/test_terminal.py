"""Terminals in boxes: a real shell, typed to as somebody types."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator

import psutil
import pytest

from bench.stage import until
from boxes.box import Box, BoxError, Program, Use
from boxes.terminal import Size
from tests.boxes.test_boxes import of_folder
from tests.command_lines import command_line

SECONDS = 90.0
INTERACTIVE = ["bash", "-i"]
LONG = f"3600.{os.getpid()}"
"""Seconds that nobody else sleeps for, so that sleepers of other runs of the tests are not taken for those of this."""
QUIETLY = (
    "import hashlib, os, sys, termios, time; mode = termios.tcgetattr(0); mode[3] &= ~termios.ECHO; "
    "termios.tcsetattr(0, termios.TCSANOW, mode); print('ready', flush=True); "
)
"""The begin of a program in Python whose terminal does not show what is typed."""


class Screen:
    """All that a program has written to its terminal."""

    def __init__(self) -> None:
        self.content = bytearray()

    def __call__(self, content: bytes) -> None:
        self.content.extend(content)

    def find(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.content.decode(errors="replace"))

    def wait_for(self, pattern: str) -> re.Match[str]:
        until(lambda: self.find(pattern), SECONDS, f"{pattern} on the screen")
        found = self.find(pattern)
        assert found
        return found


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def running(box: Box, program: Callable[..., Program]) -> Iterator[Box]:
    """A box whose program sleeps."""
    box.start(program("sleep", "3600", COLOUR="green"), lambda *_: None)
    yield box
    box.end(0)


def test_a_shell_has_the_folder_and_the_variables_of_the_box_s_program(
    running: Box, screen: Screen, program: Callable[..., Program]
) -> None:
    shell = running.open_terminal(INTERACTIVE, Size(100, 30), screen)

    shell.write(b"echo $COLOUR, $TERM, $PWD; [ -t 0 ] && echo it is a terminal; exit 3\n")

    assert shell.wait(SECONDS) == 3
    assert screen.find(f"green, xterm-256color, {program().folder}\r\n")
    assert screen.find("\nit is a terminal\r\n")


def test_a_terminal_changes_its_size(running: Box, screen: Screen) -> None:
    shell = running.open_terminal(INTERACTIVE, Size(100, 30), screen)

    shell.write(b"sleep 0; echo $LINES, $COLUMNS\n")  # bash looks at the size after each program
    screen.wait_for("30, 100\r\n")
    shell.resize(Size(132, 43))
    shell.write(b"sleep 0; echo $LINES, $COLUMNS\n")

    screen.wait_for("43, 132\r\n")
    shell.end()


def test_a_size_arrives_also_when_nobody_types(running: Box, screen: Screen) -> None:
    script = f"{QUIETLY}\nwhile tuple(os.get_terminal_size()) != (132, 43): time.sleep(0.1)"
    shell = running.open_terminal(["python3", "-c", script], Size(), screen)
    screen.wait_for("ready")

    shell.resize(Size(132, 43))

    assert shell.wait(SECONDS) == 0


def test_control_c_reaches_what_runs_in_the_foreground(running: Box, screen: Screen) -> None:
    shell = running.open_terminal(INTERACTIVE, Size(), screen)
    shell.write(f"echo be''gun; sleep {LONG}\n".encode())
    screen.wait_for("begun\r\n")
    until(lambda: sleeping(LONG), SECONDS, "it is in the foreground")

    shell.write(b"\x03")
    shell.write(b"echo go''ne on\n")

    screen.wait_for("gone on\r\n")
    shell.end()


def test_a_terminal_takes_more_than_its_program_reads_at_once(running: Box, screen: Screen) -> None:
    typed = b"".join(b"%09d\n" % number for number in range(40_000))
    script = f"{QUIETLY}time.sleep(1); print(hashlib.md5(sys.stdin.buffer.read({len(typed)})).hexdigest())"
    shell = running.open_terminal(["python3", "-c", script], Size(), screen)
    screen.wait_for("ready")

    for begin in range(0, len(typed), 10_000):
        shell.write(typed[begin : begin + 10_000])

    assert shell.wait(SECONDS) == 0
    assert screen.find(hashlib.md5(typed).hexdigest()), "all of it has arrived, in its order"


def test_a_resize_and_an_end_do_not_wait_for_a_program_that_reads_nothing(running: Box, screen: Screen) -> None:
    shell = running.open_terminal(["python3", "-c", f"{QUIETLY}time.sleep(3600.75)"], Size(), screen)
    screen.wait_for("ready")
    writing = in_background(lambda: shell.write(b"0123456789\n" * 1_000_000))
    writing.join(1.0)
    assert writing.is_alive(), "it waits for the program"

    for do in (lambda: shell.resize(Size(132, 43)), lambda: shell.resize(Size(90, 50)), shell.end):
        at_once(do)

    assert shell.wait(SECONDS) == 137
    writing.join(SECONDS)
    assert not writing.is_alive()


def test_the_size_that_is_wished_during_a_write_arrives(
    running: Box, screen: Screen, program: Callable[..., Program]
) -> None:
    typed = b"0123456789\n" * 200_000
    script = (
        f"{QUIETLY}\nwhile not os.path.exists('go'): time.sleep(0.1)\n"
        f"open('all', 'wb').write(sys.stdin.buffer.read({len(typed)}))\n"
        "while tuple(os.get_terminal_size()) != (90, 50): time.sleep(0.1)"
    )
    shell = running.open_terminal(["python3", "-c", script], Size(), screen)
    screen.wait_for("ready")
    writing = in_background(lambda: shell.write(typed))
    writing.join(0.5)
    assert writing.is_alive(), "it waits for the program"

    at_once(lambda: shell.resize(Size(132, 43)))
    at_once(lambda: shell.resize(Size(90, 50)))
    (program().folder / "go").touch()

    assert shell.wait(SECONDS) == 0
    assert (program().folder / "all").read_bytes() == typed


def test_what_a_terminal_uses_counts_as_the_box_s_also_after_its_end(
    running: Box, screen: Screen, program: Callable[..., Program]
) -> None:
    burn = (
        "import os, time; file = open('big', 'wb'); file.write(b'x' * 3_000_000); file.flush(); os.fsync(file)\n"
        "while time.process_time() < 1.0: pass\nprint('burnt', flush=True); time.sleep(3600)"
    )
    asleep = ["sleep", "3600"]
    until(lambda: asleep in map(command_line, of_folder(program().folder)), SECONDS, "all of the box have come")
    looks = [used(running)]
    shell = running.open_terminal(["python3", "-c", burn], Size(), screen)
    screen.wait_for("burnt")
    looks.append(used(running))
    shell.end()
    assert shell.wait(SECONDS) == 137
    looks.append(used(running))
    assert running.open_terminal(["true"], Size(), screen).wait(SECONDS) == 0
    looks.append(used(running))

    assert looks[1].cpu_seconds - looks[0].cpu_seconds >= 0.9
    assert looks[1].processes > looks[0].processes
    for name in ("cpu_seconds", "read_bytes", "written_bytes"):
        counted = [getattr(look, name) for look in looks]
        assert counted == sorted(counted), f"{name} never gets less"
    until(lambda: used(running).processes == looks[0].processes, SECONDS, "those of the terminal have gone")


def test_what_a_terminal_has_used_is_kept_when_its_keeper_is_killed(kind: str, running: Box, screen: Screen) -> None:
    if kind != "process":
        pytest.skip("only processes have a keeper")
    burn = "import time\nwhile time.process_time() < 0.5: pass\nprint('burnt', flush=True); time.sleep(3600.75)"
    shell = running.open_terminal(["python3", "-c", burn], Size(), screen)
    screen.wait_for("burnt")
    before = used(running)

    next(one for one in psutil.process_iter() if burn in command_line(one)).parent().kill()  # type: ignore[union-attr]

    assert shell.wait(SECONDS) == 137
    assert used(running).cpu_seconds >= before.cpu_seconds >= 0.5


def test_a_terminal_that_is_ended_takes_its_program_along(running: Box, screen: Screen) -> None:
    shell = running.open_terminal(["sh", "-c", f"echo begun; exec sleep {LONG}"], Size(), screen)
    screen.wait_for("begun")

    shell.end()

    assert shell.wait(SECONDS) == 137
    assert not sleeping(LONG)
    assert running.wait(0) is None, "the program of the box goes on"


def test_all_terminals_end_with_the_program_of_the_box(running: Box, screen: Screen) -> None:
    shells = [running.open_terminal(["sh", "-c", f"echo begun; exec sleep {LONG}"], Size(), screen) for _ in range(2)]
    until(lambda: screen.content.count(b"begun") == 2, SECONDS, "both have begun")

    running.end(0)

    assert [shell.wait(SECONDS) for shell in shells] == [137, 137]
    assert not sleeping(LONG)


def test_a_box_that_has_ended_opens_none(running: Box, screen: Screen) -> None:
    running.end(0)

    with pytest.raises(BoxError, match="the program has ended"):
        running.open_terminal(INTERACTIVE, Size(), screen)


def test_what_is_asked_of_a_terminal_after_its_end_does_nothing(running: Box, screen: Screen) -> None:
    shell = running.open_terminal(["true"], Size(), screen)
    assert shell.wait(SECONDS) == 0

    shell.write(b"echo\n")
    shell.resize(Size())
    shell.end()

    assert shell.wait(0) == 0


def in_background(do: Callable[[], None]) -> threading.Thread:
    """What may never return."""
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    return thread


def at_once(do: Callable[[], None]) -> None:
    """Do what may not wait."""
    doing = in_background(do)
    doing.join(SECONDS)  # it would wait for ever
    assert not doing.is_alive(), "it waits"


def used(box: Box) -> Use:
    found: Use = until(box.use, SECONDS, "it is told what is used")  # a Docker that is busy does not
    return found


def sleeping(seconds: str) -> list[psutil.Process]:
    return [one for one in psutil.process_iter(["cmdline"]) if seconds in (one.info["cmdline"] or ())]
