"""What runs in a forked process: chunk after chunk, read ahead, decoded, inferred, and sent back as rows."""

from __future__ import annotations

import mmap
import os
import queue
import struct
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import cv2
import numpy as np

from jobs.engines.loading import Loaded
from jobs.images.rows import Rows
from jobs.images.storage import Storage
from jobs.itemwork.messages import Item
from jobs.worker.reading import Fetched, Reader, Stalled, TooLarge, Unreadable

WAITING_SECONDS = 1.0


@dataclass(frozen=True)
class Chunk:
    """Images that one process does in one go; `number` names it."""

    number: int
    items: tuple[Item, ...]


@dataclass
class Done:
    """What became of a chunk: its rows as messages of an Arrow stream, and when it was worked on (monotonic)."""

    number: int
    begun: float
    ended: float = 0.0
    bytes_read: int = 0
    messages: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class Broken:
    """The process ends because of an error that no single image explains; `blameless` if none can have caused it."""

    reason: str
    blameless: bool = False

    @classmethod
    def by(cls, error: BaseException, doing: str = "", blameless: bool = False) -> Broken:
        """In one line."""
        return cls(f"{doing}{type(error).__name__}: {error}".split("\n", maxsplit=1)[0], blameless)


class Pulse:
    """A count in memory that a process shares with its parent; it stands still when the process hangs."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)

    def beat(self) -> None:
        """One image further."""
        struct.pack_into("Q", self._shared, 0, self.count() + 1)

    def count(self) -> int:
        """How far it is."""
        return int(struct.unpack_from("Q", self._shared, 0)[0])


class Looker:
    """Looks at images, `batch` at a time, without threads but those that read."""

    def __init__(self, loaded: Loaded, storage: Storage, rows: Rows, batch: int, pulse: Pulse) -> None:
        self._loaded = loaded
        self._reader = Reader(storage)
        self._rows = rows
        self._batch = batch
        self._pulse = pulse
        image = loaded.description.image
        self._images = np.empty((batch, *image.shape), dtype=image.dtype)

    def serve(self, parent: Connection) -> None:
        """Chunks from the parent until it closes the connection or is gone, which ends this process at once."""
        chunks: queue.SimpleQueue[tuple[Chunk, Fetched]] = queue.SimpleQueue()
        threading.Thread(target=self._receive, args=(parent, chunks), daemon=True).start()
        while True:
            chunk, fetched = chunks.get()
            try:
                done = self._look(chunk, fetched)
            except Stalled as error:
                parent.send(Broken(str(error), blameless=True))
                raise
            except Exception as error:
                parent.send(Broken.by(error))
                raise
            parent.send(done)

    def _receive(self, parent: Connection, chunks: queue.SimpleQueue[tuple[Chunk, Fetched]]) -> None:
        """Begin to read a chunk as soon as it comes, while the one before it is looked at."""
        try:
            while True:
                chunk = parent.recv()
                chunks.put((chunk, self._reader.fetch(chunk.items)))
        except (EOFError, OSError):
            os._exit(0)

    def _look(self, chunk: Chunk, fetched: Fetched) -> Done:
        done = Done(chunk.number, time.monotonic())
        names: list[str] = []
        reasons: dict[str, str] = {}
        for one in fetched.items(WAITING_SECONDS):
            self._pulse.beat()
            if one is None:
                continue
            item, content = one
            try:
                done.bytes_read += self._decode(content, self._images[len(names)])
                names.append(item.name)
            except (ValueError, cv2.error) as error:
                reasons[item.name] = str(error)
            except MemoryError:
                reasons[item.name] = str(TooLarge())
            if len(names) == self._batch:
                done.messages.append(self._infer(names))
                names = []
        if names:
            done.messages.append(self._infer(names))
        if reasons:
            done.messages.append(self._rows.failures(reasons))
        done.ended = time.monotonic()
        return done

    def _decode(self, content: bytes | Unreadable, image: np.ndarray) -> int:
        if isinstance(content, Unreadable):
            raise content
        self._loaded.prepare(content, image)
        return len(content)

    def _infer(self, names: list[str]) -> bytes:
        self._pulse.beat()
        return self._rows.of(names, self._loaded.engine.infer(self._images[: len(names)]))
