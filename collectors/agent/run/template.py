"""Runs of pushed Python programs as forks of one process, the template, which spares them the start of a Python.

A run takes a tenth of a second of a core when it starts a Python and imports the client, and a few milliseconds as a
fork. What the template does is in `fork.py`. It takes some megabytes, so it starts with the first such program.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from collectors.agent.run.fork import MOST_BYTES, READY, RESERVED, RUNS, WANTED, Order
from collectors.agent.run.guard import Guard

RETRY_SECONDS = 30.0  # from one template's start to the next one's
ANSWER_SECONDS = 5.0  # for a fork to be there; then the template is ended
END_SECONDS = 1.0  # for a killed template to be gone
_SOURCE = "from collectors.agent.run.fork import main; main()"
_ROOM = "." * 8192  # for the environment of a fork, which the kernel shows where it shows that of the template
_WORDS_BYTES = 2000  # of a template's last words

log = logging.getLogger(__name__)


class Template:
    """The template of one agent, from its loop's thread. `surroundings` is the environment that all runs share."""

    def __init__(self, guard: Guard, surroundings: Mapping[str, str]) -> None:
        self._guard = guard
        self._surroundings = surroundings
        self._process: _TemplateProcess | None = None
        self._begun = -math.inf

    def fork(self, order: Order, stdout: int, stderr: int) -> Forked | None:
        """A run that prints to two descriptors; None when it is to be started as any other, now or always."""
        message = order.to_bytes()
        process = self._find(order.library)
        if process is None or len(message) > MOST_BYTES:
            return None
        try:
            return process.fork(message, (order.descriptor, stdout, stderr))
        except OSError as error:
            log.warning("Python programs start a Python of their own for now, as their template fails: %s", error)
            if isinstance(error, (ConnectionError, TimeoutError)):  # else it is the agent that lacks descriptors
                self.close()
            return None

    def close(self) -> None:
        """End the template, and with it its forks."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _find(self, library: int) -> _TemplateProcess | None:
        """The process of the template when it can fork; else one is begun that soon will, if it is time."""
        process = self._process
        if process is not None and (process.has_ended() or process.library != library):
            log.warning("the template of Python programs is replaced: %s", process.last_words())
            self.close()
        if self._process is None and time.monotonic() >= self._begun + RETRY_SECONDS:
            self._begun = time.monotonic()
            try:
                self._process = _TemplateProcess(library, self._surroundings, self._guard)
            except OSError as error:
                log.warning("the template of Python programs cannot be started: %s", error)
        return self._process if self._process and self._process.is_ready() else None


class _TemplateProcess:
    """A process that forks once it has said that it is ready.

    `library` is the descriptor of the agent's sealed file, from which it imports.
    """

    def __init__(self, library: int, surroundings: Mapping[str, str], guard: Guard) -> None:
        self.library = library
        self._guard = guard
        self._is_ready = False
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.setblocking(False)
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-S", "-c", _SOURCE, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    cwd="/",
                    env={**surroundings, "PYTHONPATH": f"/proc/self/fd/{library}", RESERVED: _ROOM},
                    start_new_session=True,
                    pass_fds=[theirs.fileno(), library],
                )
        except BaseException:
            self._channel.close()
            raise
        self.pid = self._process.pid
        guard.watch(self.pid)

    def has_ended(self) -> bool:
        """Whether it has, by itself or because somebody ended it."""
        return self._process.poll() is not None

    def is_ready(self) -> bool:
        """Whether it can fork: it takes a moment to import."""
        if not self._is_ready:
            with suppress(OSError):  # there is no word yet, or never will be
                self._is_ready = self._channel.recv(len(READY)) == READY
                self._channel.settimeout(ANSWER_SECONDS)
        return self._is_ready

    def fork(self, message: bytes, descriptors: tuple[int, int, int]) -> Forked | None:
        """A fork by an order; None when it could not become what was ordered, OSError when there is no answer."""
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            control.settimeout(ANSWER_SECONDS)
            with theirs:
                socket.send_fds(control, [message], descriptors)
                socket.send_fds(self._channel, [WANTED], [theirs.fileno()])
            word, _, rest = control.recv(1024).decode("utf-8", "replace").partition(" ")
        except BaseException:
            control.close()
            raise
        if word == RUNS:
            return Forked(int(rest), control)
        control.close()
        if not word:
            raise ConnectionError("it has ended")
        log.warning("a fork cannot become a program: %s", rest)
        return None

    def last_words(self) -> str:
        """The end of what it said; else how it has ended."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe, which mypy cannot know
        os.set_blocking(self._process.stdout.fileno(), False)
        said = self._process.stdout.read(1 << 16) or b""
        return said[-_WORDS_BYTES:].decode("utf-8", "replace").strip() or f"exit status {self._process.returncode}"

    def close(self) -> None:
        """End it at once, or as soon as the kernel lets it go."""
        self._channel.close()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        self._guard.release(self.pid)
        if self._process.stdout is not None:
            self._process.stdout.close()


class Forked:
    """A fork of the template that has become a run, told of over `control`."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid = pid
        self.descriptor = control.fileno()
        self.is_lost = False
        self._control = control
        self._control.setblocking(False)
        self._status: int | None = None

    def has_ended(self) -> bool:
        """Whether it has; when its template has died, the kernel kills it, and nobody can tell how it ended."""
        if self._status is not None:
            return True
        try:
            word = self._control.recv(16)
        except BlockingIOError:
            return False
        except ConnectionError:
            word = b""
        self.is_lost = not word
        self._status = int(word) if word else -signal.SIGKILL
        return True

    def reap(self) -> int:
        """Let go of the process once it has ended: its exit status, negative for a signal."""
        assert self._status is not None  # noqa: S101 - it is known by then, which mypy cannot know
        self._control.close()
        return self._status
