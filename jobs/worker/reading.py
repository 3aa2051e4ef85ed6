"""Images read ahead, while those before them are looked at."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass

from jobs.images.storage import Storage
from jobs.itemwork.messages import Item

READERS = 4
"""Requests under way at once, in each process."""
GAP_BYTES = 64 * 1024
"""Images of one file that lie no farther apart are read together."""
REQUEST_BYTES = 4 * 1024 * 1024
MOST_BYTES = 256_000_000
"""Of one image; a process holds all of them while it decodes."""
GIVE_UP_SECONDS = 60.0
LEAST_TRIES = 3
"""What cannot be read is tried again for so long, and so often: one try alone may take longer. Then it has a row that
says so, and no other node tries."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
STALLED_SECONDS = 240.0
"""Without any answer; the client itself tries for about 180 s where a NameNode refuses it."""


class Unreadable(ValueError):
    """The bytes of an image cannot be had; the text says why."""


class TooLarge(Unreadable):
    """There is not enough memory for the bytes."""

    def __init__(self) -> None:
        super().__init__("needs more memory than the container has")


class Stalled(Exception):
    """HDFS does not even refuse: no image is to blame for that."""


@dataclass(frozen=True)
class _Request:
    """Bytes of one file, which hold one image or several neighbours."""

    path: str
    offset: int
    length: int | None
    items: tuple[Item, ...]


class Reader:
    """Asks for all images of a chunk at once; `fetch` returns at once, and its promise is kept by other threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="read")
        self._answered = 0.0

    def fetch(self, items: Sequence[Item]) -> Fetched:
        """Begin to read all that are not too long, and are in a file."""
        here = [(item, item.content) for item in items if item.content is not None]
        stored = [item for item in items if item.content is None]
        refused = [item for item in stored if item.length > MOST_BYTES]
        requests = _requests([item for item in stored if item.length <= MOST_BYTES])
        begun = [(request, self._pool.submit(self._read, request)) for request in requests]
        return Fetched(begun, refused, lambda: self._answered, here)

    def _read(self, request: _Request) -> bytes:
        """Tried again until it is clear that it cannot be; a file that is not there, or too short, is clear at once."""
        if request.length == 0:
            return b""
        give_up = time.monotonic() + GIVE_UP_SECONDS
        pause = FIRST_PAUSE
        tries = 0
        while True:
            tries += 1
            try:
                return self._storage.read(request.path, request.offset, request.length)
            except FileNotFoundError:
                raise Unreadable("cannot be read from HDFS: the file is not there any more") from None
            except MemoryError:  # whoever asked may ask for less
                raise TooLarge from None
            except Exception as error:  # whatever the client raises
                reason = f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0]
                late = tries >= LEAST_TRIES and time.monotonic() + pause > give_up
                if late or isinstance(error, EOFError):
                    raise Unreadable(f"cannot be read from HDFS: {reason}") from error
                print(f"{request.path}: {reason}; trying again", file=sys.stderr, flush=True)
            finally:
                self._answered = time.monotonic()
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


class Fetched:
    """The images of a chunk in the order in which they come, each with its bytes or the reason why there are none.

    Those `refused` are too long, those `here` need not be read; `answered` tells when HDFS last gave bytes, or a
    reason (monotonic).
    """

    def __init__(
        self,
        requests: list[tuple[_Request, Future[bytes]]],
        refused: Sequence[Item],
        answered: Callable[[], float],
        here: Sequence[tuple[Item, bytes]] = (),
    ) -> None:
        self._here = here
        self._requests = requests
        self._refused = refused
        self._answered = answered

    def items(self, waiting: float) -> Iterator[tuple[Item, bytes | Unreadable] | None]:
        """Each image once; None after every `waiting` seconds in which none came; Stalled when HDFS is silent."""
        yield from self._here
        for item in self._refused:
            yield item, Unreadable(f"has {item.length:,} bytes, at most {MOST_BYTES:,} are read")
        for request, future in self._requests:
            begun = time.monotonic()
            while True:
                try:
                    content = future.result(waiting)
                except NotYet:
                    if time.monotonic() - max(begun, self._answered()) > STALLED_SECONDS:
                        raise Stalled(f"no read of HDFS has returned for {STALLED_SECONDS:.0f} s") from None
                    yield None
                    continue
                except Unreadable as error:
                    yield from ((item, error) for item in request.items)
                else:
                    yield from _cut(request, content)
                break


def _cut(request: _Request, content: bytes) -> Iterator[tuple[Item, bytes]]:
    if request.length is None:
        yield request.items[0], content
        return
    for item in request.items:
        begin = (item.offset or 0) - request.offset
        yield item, content[begin : begin + item.length]


def _requests(items: Sequence[Item]) -> list[_Request]:
    """Files one by one, neighbours in a packed file together."""
    whole = [_Request(item.path, 0, None, (item,)) for item in items if item.offset is None]
    packed = sorted((item for item in items if item.offset is not None), key=_place)
    runs: list[list[Item]] = []
    for item in packed:
        if runs and _joins(runs[-1], item):
            runs[-1].append(item)
        else:
            runs.append([item])
    return whole + [_together(run) for run in runs]


def _place(item: Item) -> tuple[str, int]:
    return item.path, item.offset or 0


def _end(item: Item) -> int:
    return (item.offset or 0) + item.length


def _joins(run: list[Item], item: Item) -> bool:
    near = run[-1].path == item.path and _place(item)[1] - _end(run[-1]) <= GAP_BYTES
    return near and _end(item) - _place(run[0])[1] <= REQUEST_BYTES


def _together(run: list[Item]) -> _Request:
    first = _place(run[0])[1]
    return _Request(run[0].path, first, max(_end(item) for item in run) - first, tuple(run))
