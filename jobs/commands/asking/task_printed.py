"""What the program of a task has printed, piece by piece."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import AWAY
from infosvc.wire.tasks import TaskLogPiece
from jobs.commands.asking.task_waiting import Patience

LOOK_SECONDS = 0.5  # between two looks
STREAMS = ("stdout", "stderr")


class Printed(NamedTuple):
    """Whole lines of one stream of one start of a task."""

    attempt: int
    stream: str
    text: str


def read(client: InfoClient, task_id: str, attempt: int | None, follows: bool) -> Iterator[Printed]:
    """What there is, and with `follows` what comes until the task has ended; of a task that begins anew, all starts.

    What goes wrong at the first look is raised, later only what does not pass.
    """
    reading = _Reading(client, task_id, attempt)
    yield from reading.look()
    patience = Patience()
    while follows and not reading.has_ended:
        time.sleep(LOOK_SECONDS)
        try:
            for printed in reading.look():
                patience.begin_again()
                yield printed
            patience.renew()
        except AWAY as error:
            patience.bear(error)


class _Reading:
    """How far what a task has printed is read: which start of it, and how many bytes of each stream."""

    def __init__(self, client: InfoClient, task_id: str, attempt: int | None) -> None:
        self._client = client
        self._task_id = task_id
        self._attempt = attempt
        self._shown = 0
        self._offsets = dict.fromkeys(STREAMS, 0)
        self.has_ended = False

    def look(self) -> Iterator[Printed]:
        """What is new; a look that an error ends goes on at the next one."""
        task = self._client.task(self._task_id)
        wanted = self._attempt or task.attempt or 1
        for number in (self._shown, wanted) if 0 < self._shown < wanted else (wanted,):
            if number != self._shown:
                self._shown, self._offsets = number, dict.fromkeys(STREAMS, 0)
            for stream in STREAMS:
                for piece in _pieces(self._client, self._task_id, stream, number, self._offsets[stream]):
                    self._offsets[stream] = piece.next
                    yield Printed(number, stream, piece.text)
        self.has_ended = task.state.is_final


def _pieces(client: InfoClient, task_id: str, stream: str, attempt: int, offset: int) -> Iterator[TaskLogPiece]:
    """The pieces of a stream that are there from byte `offset` on."""
    has_more = True
    while has_more:
        piece = client.task_log(task_id, stream, attempt, offset)
        if piece.text:
            yield piece
        has_more, offset = piece.more, piece.next
