"""What a program prints: to the runner's own streams as it comes, and into HDFS, where it survives the node.

The values that it reports are a third stream beside these two, in HDFS alone. A file of the container takes what comes,
so that a program never waits for HDFS and memory is not needed for it. A thread brings the new bytes to HDFS, twice a
second at most. What HDFS has is always a beginning of that file: after whatever went wrong, the length of the file in
HDFS says where to go on, so that nothing is lost or doubled.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hadoop.client.append_stream import AppendStream, take_away
from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from jobs.kinds.task.reported import VALUES, Reports
from jobs.kinds.task.using import USED

PAUSE_SECONDS = 0.5
"""Between two times that HDFS gets what was printed meanwhile; after a longer silence it gets the next at once."""
AGAIN_SECONDS = 1.0
MOST_BYTES = 10**9
CUT = b"\n(cut here: of each stream, a task keeps 1 GB)\n"
REPLICATION = 2
BLOCK_BYTES = 16 * 2**20
"""Space that HDFS sets aside while a file is written, on each node that has it."""
PIECE_BYTES = 1 << 20
OWN_STREAMS: Mapping[str, int | None] = {"stdout": 1, "stderr": 2, VALUES: None, USED: None}
"""What is kept of a start, and the file descriptor of the runner that gets the same."""


class Spool:
    """One stream in a file of this machine: one thread writes, another reads."""

    def __init__(self, file: Path, own: int | None, most_bytes: int = MOST_BYTES) -> None:
        """`own` is the file descriptor of the runner that gets the same, None for none."""
        self._file = os.open(file, os.O_CREAT | os.O_RDWR | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._own = own
        self._most = most_bytes
        self._is_cut = False
        self.size = 0

    def write(self, content: bytes) -> None:
        """Keep and pass on; what is too much is thrown away behind one line that says so."""
        if self._is_cut:
            return
        if len(content) > self._most - self.size:
            content = content[: self._most - self.size] + CUT
            self._is_cut = True
        try:
            self.size += _write_all(self._file, content, self.size)
        except OSError as error:
            self._is_cut = True
            content += f"\n(cut here: {error.strerror})\n".encode()
        if self._own is not None:
            with suppress(OSError):  # whoever reads there has less; what HDFS gets is whole
                _write_all(self._own, content)

    def read(self, begin: int) -> bytes:
        """The next bytes from there, none at the end."""
        return os.pread(self._file, min(PIECE_BYTES, self.size - begin), begin)


class Kept:
    """The file in HDFS that follows a spool; it is made at once, or with `waits` for its first bytes.

    For one thread at a time.
    """

    def __init__(self, filesystem: FileSystem, name: str, spool: Spool, waits: bool = False) -> None:
        self._filesystem = filesystem
        self._name = name
        self._spool = spool
        self._stream: AppendStream | None = None if waits else self._make()
        self._is_made = not waits
        self.length = 0

    @property
    def printed(self) -> int:
        """Bytes that there are."""
        return self._spool.size

    @property
    def missing(self) -> int:
        """Bytes that HDFS does not have yet."""
        return self._spool.size - self.length

    def push(self) -> None:
        """Bring the next piece; after a HadoopError call again."""
        try:
            if not self._is_made:
                self._stream, self._is_made = self._make(), True
            if self._stream is None:
                self._stream, self.length = AppendStream.go_on(self._filesystem, self._name)
            if content := self._spool.read(self.length):
                self._stream.append(content, on_disk=False)
                self.length += len(content)
        except HadoopError:
            if self._stream:
                self._stream.abandon()
                self._stream = None
            raise

    def close(self) -> None:
        """Close the file; it may also be closed by the next who reads it."""
        if self._stream:
            self._stream.close()

    def _make(self) -> AppendStream:
        return AppendStream.anew(self._filesystem, self._name, 0o600, REPLICATION, BLOCK_BYTES)


class Printed:
    """The streams of one attempt at a task; `folder` is theirs in HDFS, `beside` one of this machine.

    Most programs report no values, so the file for these is made by the first. HadoopError from the constructor only.
    """

    def __init__(self, filesystem: FileSystem, folder: str, attempt: int, beside: Path) -> None:
        filesystem.make_folder(folder, mode=0o700)
        self._spools = {name: Spool(beside / f"{name}.{attempt}", own) for name, own in OWN_STREAMS.items()}
        self._kept = {
            name: Kept(filesystem, f"{folder}/{name}.{attempt}", spool, waits=name in (VALUES, USED))
            for name, spool in self._spools.items()
        }
        self._reports = Reports(_say)
        self._earlier = [f"{folder}/{name}.{number}" for name in OWN_STREAMS for number in range(1, attempt)]
        self._filesystem = filesystem
        self._due = threading.Event()
        self._hurry = threading.Event()
        self._closing = False
        self._give_up_at = float("inf")
        self._thread = threading.Thread(target=self._run, name="printed", daemon=True)
        self._thread.start()
        threading.Thread(target=self._close_earlier, name="earlier", daemon=True).start()

    def write(self, stream: str, content: bytes) -> None:
        """Never waits for HDFS."""
        self._spools[stream].write(content)
        self._due.set()
        if stream == "stdout" and (notes := self._reports.hear(content)):
            self._spools[VALUES].write(notes)

    def note_use(self, notes: bytes) -> None:
        """Keep what the program uses; never waits for HDFS."""
        self._spools[USED].write(notes)
        self._due.set()

    @property
    def steps_per_second(self) -> float | None:
        """How fast the program goes by the steps that it reports; None if it reports none, or only one."""
        return self._reports.steps_per_second

    def hurry(self) -> None:
        """Bring to HDFS now what was printed so far, as this process may be about to end."""
        self._hurry.set()
        self._due.set()

    def close(self, seconds: float) -> None:
        """Bring the rest; what HDFS does not take within so many seconds is told and given up."""
        self._give_up_at = time.monotonic() + seconds
        self._closing = True
        self.hurry()
        self._thread.join(seconds + AGAIN_SECONDS)
        if missing := sum(kept.missing for kept in self._kept.values()):
            print(f"HDFS did not take the last {missing} bytes that the program printed", flush=True)

    def _run(self) -> None:
        while not self._closing:
            self._due.wait()
            self._due.clear()
            self._bring()
            self._hurry.wait(PAUSE_SECONDS)
            self._hurry.clear()
        self._bring()
        for kept in self._kept.values():
            try:
                kept.close()
            except HadoopError as error:
                print(f"a log of the task was not closed: {error}", flush=True)

    def _close_earlier(self) -> None:
        """Close what attempts before this one left open: HDFS holds space for it."""
        for name in self._earlier:
            try:
                if self._filesystem.exists(name):
                    take_away(self._filesystem, name)
            except HadoopError as error:
                print(f"a log of an earlier attempt was not closed: {error}", flush=True)

    def _bring(self) -> None:
        """What was printed up to now, a piece of each stream in turn."""
        goals = [(kept, kept.printed) for kept in self._kept.values()]
        while (late := [kept for kept, goal in goals if kept.length < goal]) and time.monotonic() < self._give_up_at:
            for kept in late:
                try:
                    kept.push()
                except HadoopError as error:
                    print(f"what the program prints is kept here until HDFS takes it: {error}", flush=True)
                    time.sleep(AGAIN_SECONDS)


def _say(sentence: str) -> None:
    with suppress(OSError):
        print(sentence, flush=True)


def _write_all(file: int, content: bytes, begin: int | None = None) -> int:
    """Write at the file's own place, or at `begin`; the number of bytes."""
    left = memoryview(content)
    while left:
        count = os.write(file, left) if begin is None else os.pwrite(file, left, begin + len(content) - len(left))
        left = left[count:]
    return len(content)
