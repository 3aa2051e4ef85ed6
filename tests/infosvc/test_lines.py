"""Lines of a tunnel: what the other end hears of one that is broken off."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from infosvc.wire.errors import NotFound
from infosvc.wire.tunnel.frames import CLOSE, DATA, Frame, content_of
from infosvc.wire.tunnel.lines import WINDOW, Line


class Leaving:
    """Who ends the tunnel when the line has ended; `sent` is what went to the other end before."""

    def __init__(self, take: Callable[[], None]) -> None:
        self.sent: list[Frame] = []
        self.how: Mapping[str, Any] = {}
        self.has_left = threading.Event()
        self.has_ended = threading.Event()
        self._take = take

    def send(self, frames: Iterable[Frame]) -> None:
        if self.has_left.is_set():
            raise NotFound("the tunnel has ended", "tunnel_id")
        self.sent += frames

    def take(self, content: bytes) -> None:
        self._take()

    def hear_size(self, columns: int, rows: int) -> None:
        """There is no terminal."""

    def hear_end(self) -> None:
        self.has_left.set()

    def end(self, how: Mapping[str, Any]) -> None:
        self.how = how
        self.has_ended.set()

    def reasons_sent(self) -> list[Mapping[str, Any]]:
        """What the other end hears of the line's end."""
        assert self.has_ended.wait(60)
        return [content_of(frame) for frame in self.sent if frame.kind == CLOSE]


def assert_set(event: threading.Event) -> None:
    assert event.wait(60)


def fail() -> None:
    raise OSError(28, "No space left on device")


def test_the_other_end_hears_why_before_who_has_the_line_leaves() -> None:
    user = Leaving(fail)
    Line(1, user.send, user).hear(Frame(DATA, 1, b"x"))

    assert (
        user.reasons_sent() == [user.how] == [{"why": "what it brought is not taken any more: No space left on device"}]
    )


def test_who_sends_too_much_hears_so_before_who_has_the_line_leaves() -> None:
    may_take = threading.Event()
    user = Leaving(lambda: assert_set(may_take))
    line = Line(1, user.send, user)
    for _ in range(4):
        line.hear(Frame(DATA, 1, bytes(WINDOW)))
    may_take.set()

    assert user.reasons_sent() == [user.how] == [{"why": "the other end sent more than was asked for"}]
