"""Lines of a tunnel, the same at both ends: none holds up another, however slowly its bytes are taken.

An end sends at most WINDOW bytes of a line before the other says that they were taken. So whoever reads a tunnel can
put what comes into queues, never waits, and always sees the end of a line. Standard library only.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from infosvc.wire.errors import InfoError, NotFound
from infosvc.wire.tunnel.frames import CLOSE, COUNT, DATA, SIDES, SIZE, TAKEN, Frame, line_frame

WINDOW = 1 << 18
"""Bytes of a line on their way in one direction."""
TELL_BYTES = WINDOW // 4
"""How many have to be taken before the other end is told of them: less does not keep it from sending."""
PIECE_BYTES = 1 << 15
LONGEST_WHY = 2_000

Send = Callable[[Iterable[Frame]], None]


class LineUser(Protocol):
    """Who has a line at this end."""

    def take(self, content: bytes) -> None:
        """Take what came, in a thread of the line; it may wait as long as it likes. OSError ends the line."""

    def hear_size(self, columns: int, rows: int) -> None:
        """The other end's terminal has this size; it may not wait."""

    def hear_end(self) -> None:
        """The line has ended, and `take` may not wait for long any more; it may not wait itself, and may come again."""

    def end(self, how: Mapping[str, Any]) -> None:
        """The line has ended as this tells, and all that came before was taken or cannot be; it comes once."""


class Line:
    """One line. Any thread may call it."""

    def __init__(self, number: int, send: Send, user: LineUser) -> None:
        """`send` sends frames to the other end; InfoError when the tunnel is over."""
        self._number = number
        self._send = send
        self._user = user
        self._changed = threading.Condition()
        self._on_its_way = 0
        self._came: deque[bytes] = deque()
        self._waiting = 0
        self._how: Mapping[str, Any] | None = None
        threading.Thread(target=self._follow, name="line", daemon=True).start()

    def send(self, content: bytes) -> None:
        """Send bytes; it waits while the other end takes none. NotFound when the line or the tunnel has ended."""
        for begin in range(0, len(content), PIECE_BYTES):
            piece = content[begin : begin + PIECE_BYTES]
            with self._changed:
                self._changed.wait_for(lambda: self._how is not None or self._on_its_way < WINDOW)
                if self._how is not None:
                    raise NotFound("the line has ended", "line")
                self._on_its_way += len(piece)
            self._send([Frame(DATA, self._number, piece)])

    def tell_size(self, columns: int, rows: int) -> None:
        """Tell the size of the terminal here."""
        self._send([Frame(SIZE, self._number, SIDES.pack(columns, rows))])

    def close(self, **how: Any) -> None:
        """End it, and let the other end hear how; nothing more is heard of it here."""
        self._tell_end(how)
        self.end({})

    def hear(self, frame: Frame) -> None:
        """What the other end sends of it, but its end; it never waits."""
        if frame.kind == SIZE and len(frame.content) == SIDES.size:
            self._user.hear_size(*SIDES.unpack(frame.content))
        is_too_much = False
        with self._changed:
            if frame.kind == DATA and self._how is None:
                self._came.append(frame.content)
                self._waiting += len(frame.content)
                is_too_much = self._waiting > 2 * WINDOW
            elif frame.kind == TAKEN and len(frame.content) == COUNT.size:
                self._on_its_way -= COUNT.unpack(frame.content)[0]
            self._changed.notify_all()
        if is_too_much:
            self._break_off("the other end sent more than was asked for")

    def end(self, how: Mapping[str, Any]) -> None:
        """It has ended; what came before is still taken."""
        with self._changed:
            self._how = how if self._how is None else self._how
            self._changed.notify_all()
        self._user.hear_end()

    def _break_off(self, why: str) -> None:
        """End it at both ends for this reason; the other end hears it first, as a user who hears it may say less."""
        self._tell_end({"why": why})
        self.end({"why": why})

    def _tell_end(self, how: dict[str, Any]) -> None:
        """Let the other end hear how it has ended, unless the tunnel is over."""
        why = {"why": str(how["why"])[:LONGEST_WHY]} if "why" in how else {}
        with suppress(InfoError):
            self._send([line_frame(CLOSE, self._number, how | why)])

    def _follow(self) -> None:
        """Hand on what comes; whatever keeps its user from taking it ends the line."""
        untold = 0
        try:
            while (content := self._next()) is not None:
                self._user.take(content)
                untold += len(content)
                if untold >= TELL_BYTES:
                    self._send([Frame(TAKEN, self._number, COUNT.pack(untold))])
                    untold = 0
        except InfoError:
            self.end({})
        except Exception as error:  # else the other end would wait for ever
            self._break_off(f"what it brought is not taken any more: {getattr(error, 'strerror', None) or error}")
        finally:
            self._user.end(self._how or {})

    def _next(self) -> bytes | None:
        """What came next; None once all that came was taken and the line has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._came or self._how is not None)
            if not self._came:
                return None
            content = self._came.popleft()
            self._waiting -= len(content)
            return content
