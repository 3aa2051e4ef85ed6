"""Where the members of a generation find each other: a store in a process of its own, beside the member of rank 0.

Each member offers one before its rank is known. Should a store die, only what begins meanwhile has to begin again:
members that have found each other need it no more.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from torch import distributed

from learning.errors import LearningError
from learning.member.links import keep_asking

CODE = str(Path(__file__).absolute().parents[__name__.count(".")])
"""Where our code is, in whatever folder the program works later."""
START_SECONDS = 20.0
AGAIN_SECONDS = 5.0
"""From one start of a store to the next, while nobody needs it."""
ANSWER_SECONDS = 15.0
"""For a connection, and for each answer: a member that does not reach the store tells whoever leads the run sooner."""
WAIT_SECONDS = 0.2
"""Of one request, so that a generation that is over is noticed."""
LONGEST_SECONDS = 60.0
"""After which members that have not come are given up."""


class Store:
    """Offers a store on `host`."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._process: subprocess.Popen[str] | None = None
        self._secret = self._port = ""
        self._begun_at = 0.0

    def offer(self) -> str:
        """Its address, host:port:secret; a store that has died is replaced."""
        if self._process is None or self._process.poll() is not None:
            self._begin()
        if not self._port and self._process is not None:
            self._port = _read_port(self._process, self._host)
        return f"{self._host}:{self._port}:{self._secret}"

    def revive(self) -> None:
        """Begin to replace a store that has died, so that the next generation need not wait for that.

        Rarely, as a store may die again and again; and `offer` says what goes wrong, if the store is needed.
        """
        has_died = self._process is not None and self._process.poll() is not None
        if has_died and time.monotonic() > self._begun_at + AGAIN_SECONDS:
            with contextlib.suppress(LearningError):
                self._begin()

    def keep(self, number: int) -> None:
        """Forget what members of other generations than this one have told each other.

        Of 256 members that would be 36 MB of each generation. One that cannot be reached is left alone.
        """
        if self._port:
            with contextlib.suppress(OSError, ValueError):
                client = StoreClient(f"{self._host}:{self._port}:{self._secret}", lambda: True)
                try:
                    client.keep(f"{name_of(number)}/")
                finally:
                    client.close()

    def _begin(self) -> None:
        self.close()
        self._begun_at = time.monotonic()
        self._secret, self._port = secrets.token_urlsafe(24), ""
        self._process = _start(self._host, self._secret)

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            _end(self._process)
            self._process = None


class StoreClient(distributed.Store):  # type: ignore[misc] # PyTorch has no types here
    """The store at an address, as gloo asks it. OSError: it cannot be reached; TimeoutError: a member does not come.

    `is_over` is asked while it waits; then it raises InterruptedError.
    """

    def __init__(self, address: str, is_over: Callable[[], bool]) -> None:
        super().__init__()
        host, port, self._secret = address.rsplit(":", 2)
        self._is_over = is_over
        self._socket = socket.create_connection((host, int(port)), ANSWER_SECONDS)
        keep_asking(self._socket)
        self._lines = self._socket.makefile("rb")

    def set(self, name: str, value: bytes | str) -> None:
        """Tell the others something."""
        content = value.encode() if isinstance(value, str) else bytes(value)
        self._ask({"set": name, "value": content.hex()})

    def get(self, name: str) -> bytes:
        """What one of the others has told, or tells soon."""
        until = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < until:
            if (value := self._ask({"get": name, "seconds": WAIT_SECONDS})["value"]) is not None:
                return bytes.fromhex(value)
            if self._is_over():
                raise InterruptedError("the generation is over")
        raise TimeoutError(f"no member has told {name}")

    def keep(self, start: str) -> None:
        """Have the store forget all whose names begin otherwise."""
        self._ask({"keep": start})

    def wait(self, names: Sequence[str], timeout: timedelta | None = None) -> None:  # noqa: ARG002 the longest is enough
        """Until all of these have been told."""
        for name in names:
            self.get(name)

    def close(self) -> None:
        """Let go of the connection."""
        self._lines.close()
        self._socket.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._socket.sendall(json.dumps({"secret": self._secret, **request}).encode() + b"\n")
        line = self._lines.readline()
        if not line:
            raise ConnectionError("the store has closed the connection")
        answer: dict[str, Any] = json.loads(line)
        return answer


def name_of(generation: int) -> str:
    """What the names of its values begin with, and a slash."""
    return f"generation {generation}"


def _start(host: str, secret: str) -> subprocess.Popen[str]:
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "learning.member.store_server", host],
            env={**os.environ, "PYTHONPATH": CODE},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the program
        )
    except OSError as error:
        raise LearningError(f"no store can be started on {host}: {error}", "give the node more processes") from error
    if process.stdin is not None:
        with contextlib.suppress(OSError):  # of one that has ended at once nobody reads a port
            process.stdin.write(f"{secret}\n")
            process.stdin.flush()
    return process


def _read_port(process: subprocess.Popen[str], host: str) -> str:
    readable = select.select([process.stdout], [], [], START_SECONDS)[0] if process.stdout else []
    port = process.stdout.readline().strip() if process.stdout and readable else ""
    if not port:
        raise LearningError(f"no store can be started on {host}", "see what it printed above")
    return port


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()
