"""Other programs, run in one way, with one error that says what failed."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.places import ROOT, SOCKET


class LabError(Exception):
    """Something about the lab failed; the message says what and how to mend it."""


def call(argv: Sequence[str | Path], timeout: float = 600.0, stdin: str | None = None) -> str:
    """What the program printed; LabError with its complaint when it failed or took longer than `timeout` seconds."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, input=stdin or "", cwd=ROOT)
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(words)} took longer than {timeout:.0f} s") from error
    except OSError as error:
        raise LabError(f"{words[0]} did not start: {error}; run scripts/setup --lab") from error
    if done.returncode:
        raise LabError(
            f"{' '.join(words)} failed with {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}"
        )
    return done.stdout


def docker(*words: str | Path, timeout: float = 600.0) -> str:
    """What a command to the lab's own Docker printed."""
    return call(["docker", "--host", f"unix://{SOCKET}", *words], timeout)


def follow(argv: Sequence[str | Path], env: dict[str, str] | None = None) -> None:
    """Run a program whose output is for the reader; LabError when it failed."""
    status = subprocess.run([str(word) for word in argv], cwd=ROOT, env=env, stdin=subprocess.DEVNULL).returncode
    if status:
        raise LabError(f"{' '.join(str(word) for word in argv)} failed with {status}; see above")


@contextmanager
def step(title: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    begun = time.monotonic()
    print(f"Lab: {title} ...", end="", flush=True)
    try:
        yield
    except BaseException:
        print(" failed", flush=True)
        raise
    print(f" ({time.monotonic() - begun:.0f} s)", flush=True)
