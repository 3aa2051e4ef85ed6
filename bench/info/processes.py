"""The programs that the bench starts, what they use, and their end."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.info.errors import BenchError

START_SECONDS = 240.0
END_SECONDS = 60.0
PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to connections: none of these takes a port before it is listened on."""
ENDING = (signal.SIGTERM, signal.SIGINT)
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Usage:
    """CPU seconds so far and resident bytes now, of a program and what it keeps running; `children` have ended."""

    at: float
    cpu: float
    children: float
    rss: int

    def cores(self, since: Usage) -> float:
        """Share of one core used since an earlier moment."""
        return (self.cpu - since.cpu) / (self.at - since.at)

    def children_cores(self, since: Usage) -> float:
        """The same of children that came and went."""
        return (self.children - since.children) / (self.at - since.at)


@contextmanager
def running(
    argv: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A program in the foreground, its output in `log`, until the block ends."""
    process = None
    try:
        with log.open("ab") as output, _signals_wait():
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=ROOT
            )
        yield process
    finally:
        if process is not None:
            end(process)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """What asks the main thread to end comes after the block: a program that has just been started is known then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda given, _: came.append(given)) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for one in came:
        signal.raise_signal(one)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a program to end, and make it end when it does not."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
    if process.poll() is None:
        process.kill()
        process.wait()


def await_ready(process: subprocess.Popen[bytes], log: Path, ready: Callable[[], bool]) -> None:
    """Wait until a program works; BenchError with its last words when it ended or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise BenchError(f"{process.args!r} did not start; its last words: {log.read_text()[-1500:]}")
        time.sleep(0.05)


def usage(pid: int) -> Usage:
    """What a program has used, its running children included."""
    top = psutil.Process(pid)
    cpu, rss = 0.0, 0
    for process in (top, *top.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            cpu += times.user + times.system
            rss += process.memory_info().rss
    times = top.cpu_times()
    return Usage(time.monotonic(), cpu, times.children_user + times.children_system, rss)


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    for port in random.sample(PORTS, 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise BenchError(f"none of a hundred ports between {PORTS.start} and {PORTS.stop} is free")


def clean_environment() -> dict[str, str]:
    """Ours without the settings of a nodewise that is used here."""
    return {key: value for key, value in os.environ.items() if not key.startswith("NODEWISE_")}
