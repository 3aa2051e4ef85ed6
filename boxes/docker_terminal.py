"""A terminal in a box of Docker: the broker of boxes has Docker start its program in the box's container."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

from boxes.asking import ask, next_frame
from boxes.broker.frames import INPUT, MOST_INPUT_BYTES, REPORT, SIDES, SIZE, frame
from boxes.terminal import OnTerminal, Size, Terminal

LOST = 137
"""The exit code of one whose broker has ended."""


class DockerTerminal(Terminal):
    """Runs a program in a container."""

    def __init__(self, container: str, argv: Sequence[str], size: Size, on_output: OnTerminal) -> None:
        """Start it; errors are those of a box."""
        order = {"do": "open", "box": container, "argv": list(argv), **size._asdict()}
        self._connection, _ = ask(order)
        self._code = LOST
        self._done = threading.Event()
        self._wishing = threading.Lock()
        self._size = self._sent_size = size
        self._is_resized = threading.Event()
        threading.Thread(target=self._follow, args=(on_output,), name="terminal", daemon=True).start()
        threading.Thread(target=self._send_sizes, name="terminal's size", daemon=True).start()

    def write(self, typed: bytes) -> None:
        """As any terminal."""
        with self._wishing:
            for begin in range(0, len(typed), MOST_INPUT_BYTES):
                self._send_size()
                self._send(INPUT, typed[begin : begin + MOST_INPUT_BYTES])

    def resize(self, size: Size) -> None:
        """As any terminal: threads that may wait send the latest, before what is written later."""
        self._size = size
        self._is_resized.set()

    def wait(self, seconds: float | None = None) -> int | None:
        """As any terminal."""
        return self._code if self._done.wait(seconds) else None

    def end(self) -> None:
        """As any terminal: its broker kills what its caller leaves, and still tells how it ended."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def _send(self, kind: int, content: bytes) -> None:
        """Send a frame; whoever calls this holds `_wishing`."""
        with suppress(OSError):  # it has ended already
            self._connection.sendall(frame(kind, content))

    def _send_size(self) -> None:
        """As `_send`; nothing if the broker knows the latest."""
        size = self._size
        if size != self._sent_size:
            self._sent_size = size
            self._send(SIZE, SIDES.pack(*size))

    def _send_sizes(self) -> None:
        """Send what no writer has sent, until the end."""
        while not self._done.is_set():
            self._is_resized.wait()
            self._is_resized.clear()
            with self._wishing:
                self._send_size()

    def _follow(self, on_output: OnTerminal) -> None:
        try:
            with self._connection:
                while told := next_frame(self._connection):
                    kind, content = told
                    if kind != REPORT:
                        on_output(content)
                    elif (said := json.loads(content)) and "ended" in said:
                        self._code = said["ended"]
                        return
        finally:
            self._done.set()
            self._is_resized.set()
