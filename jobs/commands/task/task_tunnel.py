"""The user's end of a tunnel to a task: lines that lead to terminals in its box, and to sockets of its folder."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.tunnel.frames import MOST_LINES, OPEN, line_frame
from infosvc.wire.tunnel.lines import Line, LineUser
from infosvc.wire.tunnel.traffic import HEARD, Traffic
from infosvc.wire.tunnel.tunnel_end import TunnelCalls


class UserTunnel:
    """A tunnel that is open until the end of its `with`. Any thread may use it."""

    def __init__(self, client: InfoClient, task_id: str) -> None:
        """Open it; InfoError when there can be none."""
        self._end = TunnelCalls(client).open(task_id)
        self._traffic = Traffic(self._end, self._refuse)
        self._opening = threading.Lock()
        self._next = 0
        self.has_ended = False
        threading.Thread(target=self._follow, name="tunnel", daemon=True).start()

    def __enter__(self) -> UserTunnel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        self._end.close()

    def open(self, asked: Mapping[str, Any], user: LineUser) -> Line:
        """Open a line to {"terminal": {"argv", "columns", "rows"}} or {"socket": NAME}.

        It ends with the `code` of the terminal's program, or tells `why`. InfoError when the tunnel is over.
        """
        with self._opening:
            self._count_on()
            opening = line_frame(OPEN, self._next, asked)
            line = self._traffic.add(self._next, user)
        try:
            self._end.send([opening])
        except InfoError:
            line.end(HEARD)
            raise
        if self.has_ended:
            line.end(HEARD)
        return line

    def _count_on(self) -> None:
        """To the next number that no line has, which there is: the other end has few lines."""
        self._next = self._next % (MOST_LINES - 1) + 1
        while self._next in self._traffic:
            self._next = self._next % (MOST_LINES - 1) + 1

    def _refuse(self, _number: int, _asked: Mapping[str, Any]) -> None:
        """The other end has nothing to open here."""

    def _follow(self) -> None:
        try:
            self._traffic.run()
        finally:
            self.has_ended = True
