"""Programs are ended with all that they have started, and nobody else is, whoever gets their number later."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.worker.sessions import signal_session, status_of

Begin = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Starts a script of sh, with a session of its own."""
    begun: list[subprocess.Popen[str]] = []

    def start(script: str) -> subprocess.Popen[str]:
        begun.append(subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True))
        return begun[-1]

    yield start
    for one in begun:
        signal_session(one, signal.SIGKILL)
        one.communicate()


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it does not hold"
        time.sleep(0.02)


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -signal.SIGKILL)])
def test_the_status_of_a_program_is_told_again_and_again_and_it_can_be_waited_for(
    begin: Begin, script: str, status: int
) -> None:
    program = begin(script)

    until(lambda: status_of(program) is not None)

    assert [status_of(program), status_of(program), program.returncode, program.wait()] == [
        status,
        status,
        None,
        status,
    ]
    assert status_of(program) == status


def test_a_program_that_runs_has_no_status(begin: Begin) -> None:
    assert status_of(begin("sleep 600")) is None


def test_a_program_whose_end_the_system_does_not_keep_has_ended_and_hears_nothing(begin: Begin) -> None:
    """Whoever starts nodewise may ignore SIGCHLD, and it inherits that: then the number is free at once."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        program = begin("exit 3")
        until(lambda: status_of(program) is not None)
        gone = begin("exit 3")
        until(lambda: not Path(f"/proc/{gone.pid}").exists())

        assert not signal_session(program, signal.SIGTERM)
        assert not signal_session(gone, signal.SIGTERM)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_what_a_program_leaves_behind_is_ended_after_it(begin: Begin) -> None:
    program = begin("sleep 600 & exit 0")
    until(lambda: status_of(program) == 0)

    assert signal_session(program, 0)
    assert signal_session(program, signal.SIGKILL)
    until(lambda: not signal_session(program, 0))


def test_a_program_that_has_ended_without_leaving_anything_hears_nothing(begin: Begin) -> None:
    program = begin("exit 0")
    until(lambda: status_of(program) == 0)

    assert not signal_session(program, 0)


def test_who_gets_the_number_of_a_program_that_was_waited_for_is_not_signalled(begin: Begin) -> None:
    program, stranger = begin("exit 0"), begin("sleep 600")
    program.wait()
    program.pid = stranger.pid  # as when the kernel gives the number again

    assert not signal_session(program, signal.SIGKILL)

    os.killpg(stranger.pid, signal.SIGCONT)
    assert status_of(stranger) is None
    time.sleep(0.1)
    assert status_of(stranger) is None
