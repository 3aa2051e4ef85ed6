"""Values that a program reports while it runs: how it prints them, and how they are noted.

A line of its stdout that begins with `nodewise: ` reports values, each as NAME=NUMBER:

    nodewise: loss=0.31 accuracy=0.9 step=120

`step` says at which step of the program's work they were so; without it, a value has the step after the last one of its
name. Each value is noted as a line of JSON. What has another form is passed over, among notes too: a program may print
what it likes, and write what it likes into its user's files.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from infosvc.wire.records import NAME

MARK = b"nodewise: "
STEP = "step"
VALUES = "values"
"""The stream of notes, as `stdout` is one: their file in HDFS is named by it and the number of the start."""
MOST_LINE_BYTES = 4096
"""Of a longer line, only whole words within so many bytes count."""
MOST_NAMES = 100
MOST_BYTES = 64 * 10**6
_NAME = NAME.pattern.strip("^$")
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PAIR = re.compile(f"({_NAME})=({_NUMBER})".encode())
_STEP = re.compile(b"[0-9]{1,15}")
_NOTE = re.compile(
    f'^{{"at":([0-9]{{1,12}}[.][0-9]{{1,6}}),"name":"({_NAME})","step":([0-9]{{1,16}}),"value":({_NUMBER})}}$'.encode(),
    re.MULTILINE,
)


class Noted(NamedTuple):
    """A value that was reported `at` a moment, in Unix seconds."""

    at: float
    name: str
    step: int
    value: float


class Reports:
    """What one start of a program reports; for one thread. `say` hears once of each limit that is reached."""

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.time, most_bytes: int = MOST_BYTES
    ) -> None:
        self._say = say
        self._clock = clock
        self._left = most_bytes
        self._is_crowded = False
        self._begun = b""
        self._steps: dict[str, int] = {}
        self._first: tuple[float, int] | None = None
        self._last = (0.0, 0)

    @property
    def steps_per_second(self) -> float | None:
        """From the first step that was reported to the highest; None before a second one."""
        if self._first is None:
            return None
        seconds, steps = (last - first for last, first in zip(self._last, self._first, strict=True))
        return steps / seconds if seconds > 0 and steps > 0 else None

    def hear(self, content: bytes) -> bytes:
        """Notes of what lines report that end in the next piece of stdout; a line may come in any pieces."""
        if self._left < 0:
            return b""
        notes = b"".join(note for line in self._marked_lines(content) for note in self._notes(line))
        self._left -= len(notes)
        if self._left < 0:
            self._say("the program has reported so many values that no more of them are kept")
            return b""
        return notes

    def _marked_lines(self, content: bytes) -> Iterator[bytes]:
        """Lines that begin with the mark; others pass in a single search, for most programs print them alone."""
        end = content.find(b"\n")
        missing = MOST_LINE_BYTES + 1 - len(self._begun)
        self._begun += content[: missing if end < 0 else min(end, missing)]
        if end < 0:
            return
        if self._begun.startswith(MARK):
            yield self._begun
        while (begin := content.find(b"\n" + MARK, end) + 1) and (end := content.find(b"\n", begin)) >= 0:
            yield content[begin : min(end, begin + MOST_LINE_BYTES + 1)]
        last = content.rfind(b"\n") + 1
        self._begun = content[last : last + MOST_LINE_BYTES + 1]

    def _notes(self, line: bytes) -> Iterator[bytes]:
        step, values = parse(line)
        for name, value in values.items():
            if name not in self._steps and len(self._steps) >= MOST_NAMES:
                self._say_crowded(name)
                continue
            found = self._steps[name] = self._steps.get(name, -1) + 1 if step is None else step
            at = self._clock()
            self._first = self._first or (at, found)
            self._last = max(self._last, (at, found), key=lambda one: one[1])
            yield note(at, name, found, value)

    def _say_crowded(self, name: str) -> None:
        if not self._is_crowded:
            self._is_crowded = True
            self._say(
                f"the program reports values of more than {MOST_NAMES} names: those of {name} and more are not kept"
            )


def parse(line: bytes) -> tuple[int | None, Mapping[str, float]]:
    """The step that a line names, None for none, and its values by name, which an ordinary line does not have.

    >>> parse(b"nodewise: loss=0.31 accuracy=0.9 step=120")
    (120, {'loss': 0.31, 'accuracy': 0.9})
    >>> parse(b"nodewise: done")
    (None, {})
    """
    if not line.startswith(MARK):
        return None, {}
    line = line[: MOST_LINE_BYTES + 1]
    words = line.removeprefix(MARK).split()
    if len(line) > MOST_LINE_BYTES and not line[-1:].isspace():
        del words[-1]  # a part of a number would be another number
    found: dict[str, bytes] = {}
    for word in words:
        pair = _PAIR.fullmatch(word)
        if pair is None or (name := pair[1].decode()) in found or not math.isfinite(float(pair[2])):
            return None, {}
        found[name] = pair[2]
    step = found.pop(STEP, None)
    if step is not None and not _STEP.fullmatch(step):
        return None, {}
    return None if step is None else int(step), {name: float(number) for name, number in found.items()}


def note(at: float, name: str, step: int, value: float) -> bytes:
    """A value as it is noted: a line; `at` in Unix seconds."""
    return f'{{"at":{at:.3f},"name":"{name}","step":{step},"value":{value!r}}}\n'.encode()


def read_notes(content: bytes) -> Iterator[Noted]:
    """Each note in whole lines of a file of notes."""
    for at, name, step, value in _NOTE.findall(content):
        number = float(value)
        if math.isfinite(number):
            yield Noted(float(at), name.decode(), int(step), number)


def choose_evenly(count: int, most: int) -> Sequence[int]:
    """Which of `count` places to show where there is room for `most`: the first and the last, and evenly between.

    >>> list(choose_evenly(3, 10)), list(choose_evenly(101, 3))
    ([0, 1, 2], [0, 50, 100])
    """
    return range(count) if count <= most else [place * (count - 1) // (most - 1) for place in range(most)]
