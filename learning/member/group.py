"""The members of one generation as a group of torch's gloo, which is given up without waiting when the generation ends.

A group is never mended: after a failure, or when whoever leads the run says that the generation is over, its members
abandon it and form the next one. What a call of an abandoned group still writes goes into a buffer of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Set
from ctypes import py_object, pythonapi
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import AllreduceOptions, BroadcastOptions, PrefixStore, ProcessGroupGloo

from learning.member.links import Links
from learning.member.store import StoreClient, name_of

TIMEOUT = timedelta(minutes=30)
"""Of gloo, which gives up on slow members, too: who leads a run ends the generations of those that are lost earlier."""
FORM_SECONDS = 70.0
"""How long members may take to find each other: longer than they wait at the store for one that does not come."""
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.0002, 0.002
PAUSE_RATIO = 1 / 8
"""Of what was waited until now, the pause before the next look: each look takes CPU that gloo may need."""
LOOK_SECONDS = 0.5
"""From one look for peers that do not answer to the next, while others are waited for."""
RELEASE_SECONDS = 0.2
PIECE_BYTES = 1 << 24
"""What is spread at once."""


class Broken(Exception):
    """The group does not work any more: a member is gone, or the generation is over."""


@dataclass(frozen=True)
class Place:
    """Of a member in generation `number`: `rank` of `size`, on `host`; `store` is where all find each other."""

    number: int
    rank: int
    size: int
    store: str
    host: str


class Group:
    """Formed by all its members at once; every method raises Broken. `is_over` is asked again and again meanwhile.

    `complain` is told the addresses of peers that do not answer while they are waited for, and when they do again.
    """

    def __init__(
        self, place: Place, is_over: Callable[[], bool], complain: Callable[[Set[str]], None] | None = None
    ) -> None:
        self._place = place
        self._is_over = is_over
        self._complain = complain
        self._cut: Set[str] = frozenset()
        self._links = Links()
        self._gloo: ProcessGroupGloo | None = None
        self._work: Any = None
        self._builder: threading.Thread | None = None

    def form(self) -> None:
        """Find the others, in a thread, as that waits for them; a group of one has none."""
        if self._place.size == 1:
            return
        said: list[str] = []

        def build() -> None:
            try:
                self._gloo = _join(self._place, self._is_over)
            except Exception as error:  # whatever gloo makes of what a store raises
                said.append(str(error).split("\n", 1)[0])

        builder = self._builder = threading.Thread(target=build, name="new group", daemon=True)
        builder.start()
        until = time.monotonic() + FORM_SECONDS
        self._wait(lambda: not builder.is_alive() or time.monotonic() > until)
        if builder.is_alive():
            raise Broken(f"the members have not found each other within {FORM_SECONDS:.0f} s")
        if said:
            raise Broken(said[0])
        self._links.ask()

    def add_up(self, vector: torch.Tensor) -> None:
        """Replace it by the sum of all members' vectors; the same bits for all."""
        if self._gloo is not None:
            gloo = self._gloo
            self._finish(lambda: gloo.allreduce([vector], AllreduceOptions()))

    def spread(self, content: bytes | None, root: int = 0) -> bytes | bytearray:
        """What the member of rank `root` gives, at all members; the others give None.

        It is sent in pieces, so that nobody has it in memory more than once.
        """
        size = torch.tensor([len(content or b"")], dtype=torch.int64)
        self._spread(size, root)
        found = bytearray(0 if content else int(size))
        for begin in range(0, int(size), PIECE_BYTES):
            end = min(begin + PIECE_BYTES, int(size))
            if content:
                self._spread(torch.frombuffer(bytearray(content[begin:end]), dtype=torch.uint8), root)
            else:
                self._spread(torch.frombuffer(found, dtype=torch.uint8, count=end - begin, offset=begin), root)
        return content or found

    def abandon(self) -> threading.Thread:
        """Give it up; its connections end in the thread that is answered, which takes as long as a peer is frozen."""
        thread = threading.Thread(target=self._release, name="abandoned group", daemon=True)
        thread.start()
        return thread

    def _release(self) -> None:
        """Destroy the group once nothing of it goes on.

        Python must not end amid a destructor, which then aborts the program. So what goes on is waited for, and one
        reference too many keeps it until then.
        """
        if self._builder is not None:
            self._builder.join()
        kept = [one for one in (self._gloo, self._work) if one is not None]
        if self._work is not None:
            for one in kept:
                pythonapi.Py_IncRef(py_object(one))
            while not self._work.is_completed():
                time.sleep(RELEASE_SECONDS)
            for one in kept:
                pythonapi.Py_DecRef(py_object(one))
        self._gloo = self._work = None

    def _spread(self, tensor: torch.Tensor, root: int) -> None:
        if self._gloo is not None and tensor.numel():
            gloo, options = self._gloo, BroadcastOptions()
            options.rootRank = root
            self._finish(lambda: gloo.broadcast([tensor], options))

    def _finish(self, start: Callable[[], Any]) -> None:
        try:
            self._work = start()
            self._wait(self._work.is_completed)
            self._work.wait()
            self._work = None
        except RuntimeError as error:
            raise Broken(str(error).split("\n", 1)[0]) from error

    def _wait(self, is_done: Callable[[], bool]) -> None:
        began = looked_at = time.monotonic()
        while not is_done():
            if self._is_over():
                raise Broken("the generation is over")
            now = time.monotonic()
            if now > looked_at + LOOK_SECONDS:
                self._note_cut(self._links.find_cut())
                looked_at = time.monotonic()
            time.sleep(min(max((now - began) * PAUSE_RATIO, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS))
        self._note_cut(frozenset())

    def _note_cut(self, cut: Set[str]) -> None:
        if cut != self._cut:
            self._cut = cut
            if self._complain is not None:
                self._complain(cut)


def _join(place: Place, is_over: Callable[[], bool]) -> ProcessGroupGloo:
    options = ProcessGroupGloo._Options()
    options._timeout = TIMEOUT
    options._devices = [ProcessGroupGloo.create_device(hostname=place.host)]
    store = StoreClient(place.store, is_over)
    try:
        return ProcessGroupGloo(PrefixStore(name_of(place.number), store), place.rank, place.size, options)
    finally:
        store.close()
