"""The findings of checks, and reading that may fail or take too long."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from infosvc.wire.errors import ErrorWithRemedy

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_AGAIN = "mend what that names, then run `nodewise doctor` again"

PATIENCE_SECONDS = 5.0
"""For each answer of another machine or program."""


class State(StrEnum):
    """The state of a finding; only `fail` makes the command fail."""

    OK = "ok"
    WARN = "warn"  # works, but not as it should
    FAIL = "fail"  # something will not work
    SKIPPED = "skipped"  # not there, or nothing to look at


@dataclass(frozen=True)
class Finding:
    """What one check found; `remedy` is empty only when nothing is to be done."""

    name: str
    state: State
    what: str
    remedy: str = ""


@dataclass(frozen=True)
class Problem:
    """Why something could not be read, and what to do."""

    what: str
    remedy: str

    def as_finding(self, name: str) -> Finding:
        """The finding of a check that cannot go on without what is missing."""
        return Finding(name, State.FAIL, self.what, self.remedy)


def ok(name: str, what: str) -> Finding:
    """All is well."""
    return Finding(name, State.OK, what)


def warn(name: str, what: str, remedy: str) -> Finding:
    """It works, but not as it should."""
    return Finding(name, State.WARN, what, remedy)


def fail(name: str, what: str, remedy: str) -> Finding:
    """Something will not work."""
    return Finding(name, State.FAIL, what, remedy)


def skip(name: str, what: str, remedy: str = "") -> Finding:
    """There was nothing to look at."""
    return Finding(name, State.SKIPPED, what, remedy)


def problem(error: Exception) -> Problem:
    """Tell what one of our errors says and its remedy; show any other error as it is."""
    if isinstance(error, ErrorWithRemedy):
        return Problem(error.message, error.remedy or _AGAIN)
    if isinstance(error, PermissionError):
        return Problem(
            f"{error.filename} is not for this user",
            "run this as the user who owns it, for example `sudo -u nodewise nodewise doctor`",
        )
    return Problem(f"it could not be looked at ({error!r})", _AGAIN)


class Reading(Generic[T]):
    """Reads something in a thread of its own, which does not keep the program from ending."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._future: Future[T | Problem] = Future()
        # A daemon thread: Python waits for the threads of its pools, and a silent server must not delay the end.
        Thread(target=self._run, args=(read,), daemon=True).start()

    def _run(self, read: Callable[[], T]) -> None:
        try:
            self._future.set_result(read())
        except Exception as error:
            self._future.set_result(problem(error))

    def result(self, deadline: float) -> T | Problem:
        """What was read, or why not; waits until the monotonic second `deadline`."""
        try:
            return self._future.result(max(0.0, deadline - monotonic()))
        except TimeoutError:
            return Problem(
                "it took too long to look at", "see what is slow (network, name server, disk), then try again"
            )
