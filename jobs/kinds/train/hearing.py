"""Answers the members of a run over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from hadoop.errors import HadoopError
from jobs.application.calls import Gone, Refused, Request
from jobs.application.coordinator import Hearing
from jobs.kinds.train.said import read_said
from learning.lead.calls import MEMBER
from learning.lead.leader import Busy, Leader, Unwanted

STOP = "/stop"
"""The call of whoever ends the run after a step; its body is empty."""
MOST_BYTES = 1 << 14
"""Of what a member says."""


class RunHearing(Hearing):
    """What members say goes to the leader of their run.

    With `stored_elsewhere` a checkpoint that a member has written is not stored yet: `written` is the newest of these.
    """

    calls: ClassVar[Mapping[str, int]] = {MEMBER: MOST_BYTES, STOP: 0}

    def __init__(self, leader: Leader, *, stored_elsewhere: bool = False) -> None:
        self.leader = leader
        self.written = 0
        self._stored_elsewhere = stored_elsewhere
        self._lock = threading.Lock()
        self._connections: dict[str, object] = {}
        """By which each process has called last."""

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:
        """Answer a member; Gone when it takes part no more. What else goes wrong is no fault of who calls."""
        if call == STOP:
            self.leader.stop()
            return None
        try:
            say = read_said(request.body)
        except (ValueError, RecursionError) as error:  # what msgspec raises is a ValueError
            raise Refused(f"the body is not what a member says: {error}") from None
        with self._lock:
            self._connections[say.process] = request.connection
            if self._stored_elsewhere:
                self.written = max(self.written, say.checkpoint)
        if self._stored_elsewhere and say.checkpoint:
            say = replace(say, checkpoint=0)
        try:
            return self.leader.hear(say).to_json()
        except Busy as error:
            raise HadoopError(str(error)) from None
        except Unwanted as error:
            raise Gone(str(error)) from None

    def hang_up(self, connection: object) -> None:
        """A process that has no other connection by now may be no more."""
        with self._lock:
            gone = [process for process, last in self._connections.items() if last is connection]
        for process in gone:
            self.leader.hang_up(process, partial(self._has_another, process, connection))

    def _has_another(self, process: str, connection: object) -> bool:
        with self._lock:
            return self._connections[process] is not connection
