"""Tunnels of a task, seen from its runner: somebody's terminals in the box, and connections to what the program serves.

The runner comes to the information service for them, with the token of its task, so nothing listens for them here.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from boxes.box import Box
from boxes.terminal import Size
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict, InfoError, NotFound
from infosvc.wire.tunnel.described import Tunnel
from infosvc.wire.tunnel.frames import CLOSE, line_frame
from infosvc.wire.tunnel.lines import LONGEST_WHY, Line
from infosvc.wire.tunnel.traffic import Traffic
from infosvc.wire.tunnel.tunnel_end import TunnelCalls, TunnelEnd

MOST_LINES = 64
"""Of one tunnel."""
MOST_TERMINALS = 4
"""Of one task: in a box of Docker each has a process of the node's broker, whose places all boxes share."""
LAST_SECONDS = 10.0
"""How long a program may go on reading what came before its line ended."""
PIECE_BYTES = 1 << 15
CONNECT_SECONDS = 10.0


class LineError(Exception):
    """A line cannot be opened; its text says why."""


class Tunnels:
    """Joins the tunnels of a task, each with a thread of its own."""

    def __init__(self, client: InfoClient, task_id: str, folder: Path) -> None:
        """`folder` is the program's."""
        self._calls = TunnelCalls(client)
        self._task_id = task_id
        self._folder = folder
        self._box: Box | None = None
        self._joining = threading.Lock()
        self._places = threading.Semaphore(MOST_TERMINALS)

    def enter(self, box: Box) -> None:
        """Terminals are opened in this box from now on."""
        self._box = box

    def open_terminal(self, argv: Sequence[str], size: Size) -> _TerminalUser:
        """A terminal in the box; LineError or what the box raises when there can be none."""
        if (box := self._box) is None:
            raise LineError("the program does not run now")
        if not self._places.acquire(blocking=False):
            raise LineError(f"a task has at most {MOST_TERMINALS} terminals: end one of them")
        try:
            return _TerminalUser(box, argv, size, self._places.release)
        except BaseException:
            self._places.release()
            raise

    def connect(self, name: str) -> _SocketUser:
        """A connection to what listens in the program's folder; LineError when there is none."""
        if "/" in name or name in ("", ".", ".."):
            raise LineError(f"{name[:80]!r} is no name of a socket in the program's folder")
        return _SocketUser(_connect(self._folder / name))

    def join(self) -> None:
        """Come to those that wait; the caller goes on."""
        threading.Thread(target=self._join, name="tunnels", daemon=True).start()

    def _join(self) -> None:
        if not self._joining.acquire(blocking=False):  # it is being done, and who calls calls again
            return
        try:
            for tunnel in self._calls.waiting(self._task_id):
                with suppress(NotFound, Conflict):  # it has ended, or was joined
                    self._join_one(tunnel)
        except InfoError as error:
            print(f"no tunnel to this task can be joined: {error}", flush=True)
        finally:
            self._joining.release()

    def _join_one(self, tunnel: Tunnel) -> None:
        served = _Served(self._calls.join(tunnel), self)
        threading.Thread(target=served.run, name="tunnel", daemon=True).start()


class _Served:
    """One tunnel; its lines are opened by the thread that reads it."""

    def __init__(self, end: TunnelEnd, tunnels: Tunnels) -> None:
        self._end = end
        self._tunnels = tunnels
        self._traffic = Traffic(end, self._open)

    def run(self) -> None:
        """Do as its other end asks, until it is over."""
        with self._end:
            self._traffic.run()

    def _open(self, number: int, asked: Mapping[str, Any]) -> None:
        try:
            self._open_line(number, asked)
        except Exception as error:  # whatever is asked, other lines go on
            with suppress(InfoError):
                self._end.send([line_frame(CLOSE, number, {"why": str(error)[:LONGEST_WHY]})])

    def _open_line(self, number: int, asked: Mapping[str, Any]) -> None:
        if number in self._traffic:
            raise LineError(f"line {number} is open already")
        if len(self._traffic) >= MOST_LINES:
            raise LineError(f"a tunnel has at most {MOST_LINES} lines")
        user: _TerminalUser | _SocketUser
        match asked:
            case {"terminal": {"argv": [str(), *_] as argv, "columns": int(columns), "rows": int(rows)}}:
                user = self._tunnels.open_terminal(list(map(str, argv)), Size(columns, rows).within_bounds())
            case {"socket": str(name)}:
                user = self._tunnels.connect(name)
            case _:
                raise LineError("a line leads to a terminal with argv, columns and rows, or to a socket")
        user.serve(self._traffic.add(number, user))


class _TerminalUser:
    """A terminal in the box has a line: what it writes is sent once there is one."""

    def __init__(self, box: Box, argv: Sequence[str], size: Size, on_end: Callable[[], object]) -> None:
        """Open it; errors are those of the box. `on_end` is called once its program has ended."""
        self._on_end = on_end
        self._line: Line | None = None
        self._has_line = threading.Event()
        self._terminal = box.open_terminal(argv, size, self._show)

    def serve(self, line: Line) -> None:
        """Use this line until the terminal's program has ended."""
        self._line = line
        self._has_line.set()
        threading.Thread(target=self._follow, name="terminal's line", daemon=True).start()

    def take(self, content: bytes) -> None:
        self._terminal.write(content)

    def hear_size(self, columns: int, rows: int) -> None:
        self._terminal.resize(Size(columns, rows).within_bounds())

    def hear_end(self) -> None:
        self._terminal.end()

    def end(self, how: Mapping[str, Any]) -> None:
        """Its program has heard of that already."""

    def _show(self, content: bytes) -> None:
        self._has_line.wait()
        if self._line:
            with suppress(InfoError):
                self._line.send(content)

    def _follow(self) -> None:
        code = self._terminal.wait()
        self._on_end()
        if self._line:
            self._line.close(code=code)


class _SocketUser:
    """A connection has a line."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._last = threading.Timer(LAST_SECONDS, self._shut, (socket.SHUT_RDWR,))
        self._last.daemon = True
        self._ending = threading.Lock()

    def serve(self, line: Line) -> None:
        """Use this line until either of them has ended."""
        threading.Thread(target=self._follow, args=(line,), name="socket's line", daemon=True).start()

    def take(self, content: bytes) -> None:
        self._connection.sendall(content)

    def hear_size(self, columns: int, rows: int) -> None:
        """It has none."""

    def hear_end(self) -> None:
        """What came before is still taken, for a while."""
        with self._ending, suppress(RuntimeError):  # it has heard of that before
            self._last.start()

    def end(self, how: Mapping[str, Any]) -> None:  # noqa: ARG002 a program is told nothing of that
        """The program reads an end of file behind what came."""
        self.hear_end()
        self._shut(socket.SHUT_WR)

    def _shut(self, what: int) -> None:
        with suppress(OSError):
            self._connection.shutdown(what)

    def _follow(self, line: Line) -> None:
        with self._connection, suppress(OSError):
            while piece := self._connection.recv(PIECE_BYTES):
                with suppress(InfoError):  # the program may still read what was sent before the end
                    line.send(piece)
        self._last.cancel()
        line.close()


def _connect(path: Path) -> socket.socket:
    """LineError when nobody listens there."""
    nobody = LineError(f"nothing listens at {path.name} in the program's folder")
    try:
        file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):  # no file, or no name of one
        raise nobody from None
    connection = socket.socket(socket.AF_UNIX)
    try:
        if not stat.S_ISSOCK(os.fstat(file).st_mode):
            raise nobody
        connection.settimeout(CONNECT_SECONDS)
        connection.connect(f"/proc/self/fd/{file}")  # the same, whatever its program puts there meanwhile
        connection.settimeout(None)
    except OSError:
        connection.close()
        raise nobody from None
    except LineError:
        connection.close()
        raise
    finally:
        os.close(file)
    return connection
