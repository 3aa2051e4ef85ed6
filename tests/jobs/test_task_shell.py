"""`nodewise task shell` before its program is there, and what it does with its input and output."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from infosvc.wire.errors import NotFound
from infosvc.wire.tasks import EXAMPLE_ID
from infosvc.wire.tunnel.lines import Line
from jobs.commands.task import task_shell
from jobs.commands.task.task_shell import END_OF_INPUT, _Keys
from tests.cluster.site import until
from tests.jobs import test_task_tunnels
from tests.jobs.test_task_tunnels import ROOT, Running, Typist, shell

running = test_task_tunnels.running

MOST_TAKEN = 4 << 20
LOCAL_MODES = 3
"""Where they stand among what is known of a terminal."""


def alone(running: Running) -> Running:
    """The same task, to which no runner comes."""
    running.close()
    return running


def test_a_pipe_waits_until_what_it_brings_is_read(running: Running) -> None:
    """Else all of it would lie in memory."""
    ours, its = os.pipe()
    process = shell(alone(running), "--", "cat", stdin=ours, stderr=subprocess.DEVNULL)
    os.set_blocking(its, False)
    taken, last = 0, time.monotonic()
    while (time.monotonic() < last + 1 or not taken) and taken < MOST_TAKEN:
        try:
            taken += os.write(its, bytes(1 << 16))
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.05)
    process.kill()
    process.wait()
    os.close(ours)
    os.close(its)

    assert taken < MOST_TAKEN


def test_a_key_ends_a_shell_that_has_room_for_no_other_key(running: Running) -> None:
    typist = Typist(alone(running))
    until(lambda: typist.sees(b"waiting for the runner"))
    until(lambda: not termios.tcgetattr(typist._ours)[LOCAL_MODES] & termios.ICANON)  # else what is too much is lost

    def type_much() -> None:
        with suppress(OSError):
            for _ in range(MOST_TAKEN >> 12):
                typist.type(b"x" * (1 << 12))
            typist.type(b"\x1d")

    threading.Thread(target=type_much, daemon=True).start()
    until(lambda: typist.sees(b"\a"))

    assert typist.close() == 0


@pytest.mark.parametrize("key", [b"\x03", b"\x1d"])
def test_a_shell_tells_how_it_is_left_while_it_waits_for_the_runner(running: Running, key: bytes) -> None:
    typist = Typist(alone(running))
    said = f"waiting for the runner of {running.task.task_id}; Ctrl-] ends the shell\r\n"
    until(lambda: typist.sees(said.encode()))

    def has_ended() -> bool:
        if typist.process.poll() is None:
            with suppress(OSError):  # it has ended since
                typist.type(key)  # one that comes before the shell reads keys one by one is lost
        return typist.process.poll() is not None

    until(has_ended)
    typist.close()


def test_keys_that_are_typed_while_it_waits_are_not_lost(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.tunnels, "join", lambda: None)
    typist = Typist(running)
    until(lambda: typist.sees(b"waiting for the runner"))
    typist.type(b"echo ty''ped; exit 4\r")
    time.sleep(0.5)

    monkeypatch.undo()

    until(lambda: typist.sees(b"typed\r\n"))
    assert typist.close() == 4


def test_a_shell_whose_output_is_closed_is_refused() -> None:
    words = shlex.join([*(sys.executable, "-m", "nodewise", "task", "shell"), EXAMPLE_ID])
    line = f"{words} -- echo hi < /dev/null >&-"
    done = subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True, timeout=60, check=False, cwd=ROOT)

    assert done.returncode == 2
    assert "standard output is closed: a shell needs one, such as >/dev/null" in done.stderr


def test_what_ends_a_shell_cannot_steer_the_terminal(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence comes from the node."""
    monkeypatch.setattr(running.box, "open_terminal", refuse)
    with shell(running, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        _, said = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "it is �]0;mine�" in said.decode()


def refuse(*_: Any) -> Any:
    raise OSError("it is \x1b]0;mine\a")


def test_the_end_of_the_input_is_sent_more_and_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    pauses: list[float] = []

    class Played:
        def send(self, content: bytes) -> None:
            if len(sent) == 6:
                raise NotFound("the line has ended", "line")
            sent.append(content)

    monkeypatch.setattr(task_shell, "time", SimpleNamespace(sleep=pauses.append))
    keys = _Keys(cast(Line, Played()), may_wait=True)
    keys.put(b"a\n")
    keys.put(b"")
    until(lambda: len(pauses) == 5)

    assert sent == [b"a\n", *[END_OF_INPUT] * 5]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 4.0]
