"""The broker's side of terminals: what it does with callers that send too much or take too little."""

from __future__ import annotations

import fcntl
import json
import socket
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.docker_here import DockerHere
from bench.stage import until
from boxes import create
from boxes.box import Box, Image, Limits, Program
from boxes.broker.frames import HEADER, INPUT, MOST_INPUT_BYTES, REPORT, STDOUT, frame, read_frame
from boxes.broker.session import serve
from boxes.broker.settings import Settings
from boxes.terminal import Size

SECONDS = 90.0


@pytest.fixture
def running(docker: DockerHere, tmp_path: Path) -> Iterator[Box]:
    """A box whose program sleeps."""
    box = create("docker")
    image = Image(docker.image, docker.fetch)
    box.start(Program(["sleep", "3600"], {}, tmp_path, Limits(64), image), lambda *_: None)
    yield box
    box.end(0)


@pytest.fixture
def order(docker: DockerHere, running: Box) -> Callable[..., bytes]:
    """The order that opens a terminal, as it is sent."""

    def of(*argv: str) -> bytes:
        found = docker.engine.ask("GET", "/containers/json")[0]["Names"][0].lstrip("/")
        return json.dumps({"do": "open", "box": found, "argv": argv, "columns": 80, "rows": 24}).encode() + b"\n"

    return of


def test_a_terminal_whose_caller_sends_too_large_a_frame_ends_and_the_broker_serves_the_next(
    docker: DockerHere, running: Box, order: Callable[..., bytes]
) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(str(docker.socket))
        connection.sendall(order("cat"))
        assert next_report(connection).keys() == {"started"}
        connection.sendall(frame(INPUT, b"x" * (MOST_INPUT_BYTES - 1) + b"\n"))

        connection.sendall(HEADER.pack(INPUT, MOST_INPUT_BYTES + 1))

        assert next_report(connection) == {"ended": 137}
        assert read_frame(connection.recv) is None
    assert running.open_terminal(["sh", "-c", "exit 3"], Size(), lambda _: None).wait(SECONDS) == 3
    assert running.wait(0) is None, "the program of the box goes on"


def test_a_caller_that_does_not_take_all_output_reads_nothing_else_in_it(
    docker: DockerHere, order: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boxes.broker.terminal.END_SECONDS", 0.5)
    here, there = socket.socketpair()
    with here, there:
        here.settimeout(SECONDS)
        serving = threading.Thread(target=serve, args=(there, Settings.load(docker.settings)), daemon=True)
        serving.start()
        here.sendall(order("yes", "output"))
        assert next_report(here).keys() == {"started"}
        until(lambda: stands_still(here), SECONDS, "no more has room")

        here.shutdown(socket.SHUT_WR)
        serving.join(SECONDS)

        assert not serving.is_alive(), "it waits no longer for its caller"
        left = b""
        while piece := here.recv(1 << 16):
            left += piece
    while len(left) >= HEADER.size:
        kind, length = HEADER.unpack(left[: HEADER.size])
        content, left = left[HEADER.size : HEADER.size + length], left[HEADER.size + length :]
        if kind == REPORT and not left:  # there was room yet: somebody paused while this stood still
            assert json.loads(content).keys() <= {"ended", "failed"}
            break
        assert kind == STDOUT
        assert set(content) <= set(b"output\r\n")


def stands_still(connection: socket.socket) -> bool:
    """Whether what waits to be read does not become more."""
    before = waiting(connection)
    time.sleep(0.3)
    return 0 < before == waiting(connection)


def waiting(connection: socket.socket) -> int:
    return int.from_bytes(fcntl.ioctl(connection, termios.FIONREAD, bytes(4)), sys.byteorder)


def next_report(connection: socket.socket) -> dict[str, object]:
    """What the broker tells next of the terminal; output before it is passed over."""
    while told := read_frame(connection.recv):
        if told[0] == REPORT:
            found: dict[str, object] = json.loads(told[1])
            return found
    return {}
