"""Commands that speak to Hadoop, one after another in one process: most of what each took was its JVM.

Each line is `[number, words, environment, folder]`, each answer `[number, status, output, errors]`. What a process is,
is tested with real ones: the first of each command, those that run beside each other, and all in a block of `apart`.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from subprocess import CompletedProcess

from tests import in_process

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600
GROUPS = ("env", "infer", "job", "locality", "pool", "train")
FIXED = ("--hadoop", "--jars", "--keytab", "--principal", "--user")
"""How options begin that tell a JVM something when it starts."""
VARY = ("NODEWISE_URL", "PYTEST_CURRENT_TEST")
"""Variables that only the command itself reads, each time."""


class _Kept:
    """A process in which commands run, until it ends."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.lock = threading.Lock()
        self._numbers = count()
        words, pipe = [sys.executable, "-m", "tests.cluster.commands"], subprocess.PIPE
        self._process = subprocess.Popen(words, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)

    def run(self, words: list[str], environment: Mapping[str, str]) -> CompletedProcess[str]:
        """How a command ended; TimeoutExpired as `subprocess.run`."""
        try:
            return self._run(words, environment)
        except BaseException:  # its answer might be taken for that of the next one
            self.end()
            raise

    def _run(self, words: list[str], environment: Mapping[str, str]) -> CompletedProcess[str]:
        assert self._process.stdin and self._process.stdout
        number = next(self._numbers)
        self._process.stdin.write(json.dumps([number, words, dict(environment), str(Path.cwd())]) + "\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], SECONDS)[0]:
            raise subprocess.TimeoutExpired(words, SECONDS)
        line = self._process.stdout.readline()
        assert line, f"the process of commands has ended at {words}"
        answered, *told = json.loads(line)
        assert answered == number, line
        return CompletedProcess(words, *told)

    def is_running(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.communicate()


class _Commands:
    """Which processes are kept: one for each home and environment."""

    def __init__(self) -> None:
        self.is_keeping = False
        self._lock = threading.Lock()
        self._kept: dict[object, _Kept] = {}
        self._seen: set[tuple[str, ...]] = set()

    def find(self, home: Path, words: tuple[str, ...], environment: Mapping[str, str]) -> _Kept | None:
        """The process in which a command is to run, whose lock is taken; None for one of its own."""
        with self._lock:
            is_new = words[:2] not in self._seen
            self._seen.add(words[:2])
            is_fixed = any(word.startswith(FIXED) for word in words)
            if is_new or is_fixed or not self.is_keeping or words[0] not in GROUPS or words[:2] == ("train", "run"):
                return None
            key = home, frozenset(one for one in environment.items() if one[0] not in VARY)
            kept = self._kept.get(key)
            if kept is None or not kept.is_running():
                kept = self._kept[key] = _Kept(environment)
            return kept if kept.lock.acquire(blocking=False) else None

    def end(self) -> None:
        """End all processes."""
        with self._lock:
            while self._kept:
                self._kept.popitem()[1].end()


_COMMANDS = _Commands()


def run(home: Path, words: tuple[str, ...], environment: Mapping[str, str]) -> CompletedProcess[str]:
    """A command with a home, in the process that is kept for it where that is right, else in one of its own."""
    whole = ["--home", str(home), *words]
    if kept := _COMMANDS.find(home, words, environment):
        try:
            return kept.run(whole, environment)
        finally:
            kept.lock.release()
    command = [sys.executable, "-m", "nodewise", *whole]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS)


@contextmanager
def keep_processes() -> Iterator[None]:
    """Processes are kept in this block, and end with it: what a cluster's settings are is read once by each."""
    _COMMANDS.is_keeping = True
    try:
        yield
    finally:
        _COMMANDS.is_keeping = False
        _COMMANDS.end()


@contextmanager
def apart() -> Iterator[None]:
    """Each command in this block has a process of its own, so that several begin at once."""
    was_keeping, _COMMANDS.is_keeping = _COMMANDS.is_keeping, False
    try:
        yield
    finally:
        _COMMANDS.is_keeping = was_keeping


def _serve() -> None:
    """Run what is asked for. Programs that a command starts get neither the questions nor the answers."""
    asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with tempfile.TemporaryFile() as beside:  # what does not come from Python is the command's output as well
        os.dup2(beside.fileno(), 1)
        for line in asked:
            number, words, environment, folder = json.loads(line)
            os.chdir(folder)
            os.ftruncate(1, 0)
            os.lseek(1, 0, os.SEEK_SET)
            try:
                done = in_process.nodewise(*words, env=environment)
                status, out, err = done.returncode, done.stdout, done.stderr
            except Exception:
                status, out, err = 1, "", traceback.format_exc()
            written = os.pread(1, os.fstat(1).st_size, 0).decode()
            print(json.dumps([number, status, written + out, err]), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
