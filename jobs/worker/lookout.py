"""Where the application master is, as a file in HDFS tells, read by a process that ends again.

The client of HDFS has threads, and a process that has threads must not fork: so the parent never reads HDFS itself.
"""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from jobs.images.storage import Storage
from jobs.worker.sessions import die_with_parent

PAUSE_SECONDS = 1.0
LONGEST_SECONDS = 15.0


@dataclass(frozen=True)
class Found:
    """An address, or `gone` if not even the job's folder is there; neither when nobody can say."""

    address: str | None = None
    gone: bool = False


class Lookout:
    """Reads `path`, which lies in the job's folder, again and again; `in_child` lets go of what is the parent's."""

    def __init__(self, path: str, storage: Callable[[], Storage], in_child: Callable[[], None], now: float) -> None:
        self._path = path
        self._storage = storage
        self.in_child = in_child
        self._next = now
        self._pid = 0
        self._reader: Connection | None = None
        self._deadline = 0.0
        self.poll(now)

    def poll(self, now: float) -> Found | None:
        """What was found since the last call, if anything; begins to look if nobody does."""
        if self._reader is None:
            if now >= self._next:
                self._start(now)
            return None
        if not self._reader.poll() and now < self._deadline:
            return None
        self._next = now + PAUSE_SECONDS
        return self.close()

    def close(self) -> Found | None:
        """End the process that looks, if one does, and say what it found."""
        if self._reader is None:
            return None
        try:
            found = Found(**json.loads(self._reader.recv_bytes())) if self._reader.poll() else None
        except (EOFError, OSError):
            found = None
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._reader.close()
        self._reader = None
        return found

    def _start(self, now: float) -> None:
        self._reader, writer = Pipe(duplex=False)
        self._deadline = now + LONGEST_SECONDS
        parent = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            try:
                die_with_parent(parent)
                self._reader.close()
                self.in_child()
                writer.send_bytes(json.dumps(asdict(look(self._storage(), self._path))).encode())
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        writer.close()


def look(storage: Storage, path: str) -> Found:
    """What the file says; OSError or what the client raises when HDFS cannot be asked."""
    try:
        return Found(str(json.loads(storage.read(path, 0, None))["address"]))
    except FileNotFoundError:
        return Found(gone=not storage.exists(path.rpartition("/")[0]))
    except (ValueError, KeyError):  # it is just being written
        return Found()
