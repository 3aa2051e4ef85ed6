"""Reads a tunnel at one of its ends and hands each frame to its line. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from infosvc.wire.tunnel.frames import CLOSE, IDLE, OPEN, Frame, content_of
from infosvc.wire.tunnel.lines import Line, LineUser
from infosvc.wire.tunnel.tunnel_end import TunnelEnd

HEARD = {"why": "the tunnel has ended: the program of the task has, or its runner or the information service has gone"}
NOBODY = {"why": "the runner of the task does not come: a submitter has to run, and to reach the task's node"}
"""How lines end with their tunnel."""

OnOpen = Callable[[int, Mapping[str, Any]], None]
"""Hears the number of a line that the other end opens, and what it asks for."""


class Traffic:
    """The lines of a tunnel; one that has ended is forgotten."""

    def __init__(self, end: TunnelEnd, on_open: OnOpen) -> None:
        self._end = end
        self._on_open = on_open
        self._lines: dict[int, Line] = {}
        self._has_heard = False

    def __len__(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    def __contains__(self, number: int) -> bool:
        """Whether there is a line of this number."""
        return number in self._lines

    def add(self, number: int, user: LineUser) -> Line:
        """A line of a number that none has."""
        line = self._lines[number] = Line(number, self._end.send, _Forgetting(self._lines, number, user))
        return line

    def run(self) -> None:
        """Until the tunnel is over, and with it the lines that are open then."""
        try:
            for frames in self._end:
                for frame in frames:
                    self._hear(frame)
        finally:
            for line in list(self._lines.values()):
                line.end(HEARD if self._has_heard else NOBODY)

    def _hear(self, frame: Frame) -> None:
        self._has_heard = self._has_heard or frame.kind != IDLE
        if frame.kind == OPEN:
            self._on_open(frame.line, content_of(frame))
        elif line := self._lines.get(frame.line):
            line.end(content_of(frame)) if frame.kind == CLOSE else line.hear(frame)


class _Forgetting:
    """Who has a line, which is forgotten when it has ended."""

    def __init__(self, lines: dict[int, Line], number: int, user: LineUser) -> None:
        self._lines = lines
        self._number = number
        self._user = user
        self.take, self.hear_size, self.hear_end = user.take, user.hear_size, user.hear_end

    def end(self, how: Mapping[str, Any]) -> None:
        self._lines.pop(self._number, None)
        self._user.end(how)
