"""What a program leaves in $CHECKPOINT while it runs, kept in HDFS, so that a later start goes on from there.

A folder of HDFS has a numbered folder for each start that ever used it, and in it numbered snapshots, each put in place
by one rename. The newest snapshot of the newest start counts: what an earlier one writes that wakes up late does not.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from jobs.errors import JobError
from jobs.kinds.task.committing import upload_folder

FOLDER = ".checkpoint"
"""Below the task's folder."""
START = "start-"
LOOK_SECONDS = 2.0
LAST_LOOKS = 3
"""At the end, with LOOK_SECONDS between them, if HDFS does not take what is left."""
LONGEST_SECONDS = 60.0
"""After so long a folder is kept although the program writes to it all the time."""
KEPT = 2
"""Snapshots of a start; one that is read must not be deleted just then."""

_Seen = Mapping[str, tuple[int, int]]


class Checkpoint:
    """The checkpoint of one start; `folder` is the program's, `place` is in HDFS. Only `begin` raises HadoopError."""

    def __init__(self, filesystem: FileSystem, place: str, folder: Path) -> None:
        self._filesystem = filesystem
        self._place = place.rstrip("/")
        self._folder = folder
        self._start = self._number = 0
        self._kept: _Seen = {}
        self._keeping = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)

    def begin(self) -> bool:
        """Bring the newest snapshot that there is, and keep new ones until `close`; whether there was one."""
        starts = _numbers(self._filesystem, self._place, START)
        self._start = max(starts, default=0) + 1
        self._filesystem.make_folder(self._of(self._start))
        newest = next(filter(None, (self._newest(number) for number in sorted(starts, reverse=True))), None)
        if newest:
            self._filesystem.download(newest, self._folder)
        self._folder.mkdir(exist_ok=True)
        self._kept = _look(self._folder)
        self._thread.start()
        return newest is not None

    def close(self) -> None:
        """Keep what there is now, and no more after that; what HDFS does not take is told."""
        self._ended.set()
        self._thread.join()
        for look in range(LAST_LOOKS):
            if look:
                time.sleep(LOOK_SECONDS)
            if self.keep_now():
                return

    def keep_now(self) -> bool:
        """Keep what there is now, as the node may be left soon; whether HDFS has taken it, and else it is told why."""
        now = _look(self._folder)
        with self._keeping:
            if now != self._kept:
                self._keep(now)
            return now == self._kept

    def _run(self) -> None:
        before, changed_at = self._kept, time.monotonic()
        while not self._ended.wait(LOOK_SECONDS):
            now = _look(self._folder)
            if now == self._kept:
                changed_at = time.monotonic()
            elif now == before or time.monotonic() - changed_at > LONGEST_SECONDS:  # it is quiet, or never will be
                self.keep_now()
                changed_at = time.monotonic()
            before = now

    def _keep(self, now: _Seen) -> None:
        number = self._number + 1
        target = f"{self._of(self._start)}/{number}"
        try:
            self._filesystem.delete(f"{target}.part")
            upload_folder(self._filesystem, self._folder, f"{target}.part")
            self._filesystem.rename(f"{target}.part", target)
        except (HadoopError, JobError, OSError) as error:
            print(f"the checkpoint is not kept: {error}", flush=True)
            return
        self._number, self._kept = number, now
        with suppress(HadoopError):
            self._filesystem.delete(f"{self._of(self._start)}/{number - KEPT}")
            for earlier in range(1, self._start - 1) if number == 1 else ():
                self._filesystem.delete(self._of(earlier))

    def _newest(self, start: int) -> str | None:
        number = max(_numbers(self._filesystem, self._of(start)), default=None)
        return None if number is None else f"{self._of(start)}/{number}"

    def _of(self, start: int) -> str:
        return f"{self._place}/{START}{start}"


def _numbers(filesystem: FileSystem, folder: str, prefix: str = "") -> list[int]:
    """What is behind the prefix in the names of a folder's entries, where it is a number."""
    names = [one.name.removeprefix(prefix) for one in filesystem.entries(folder) if one.name.startswith(prefix)]
    return [int(name) for name in names if name.isascii() and name.isdecimal()]


def _look(folder: Path) -> _Seen:
    """Size and time of each file below a folder."""
    found = {}
    for where, _, names in os.walk(folder):  # it passes over folders that are gone already
        for name in names:
            path = Path(where, name)
            with suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    found[str(path.relative_to(folder))] = (status.st_size, status.st_mtime_ns)
    return found
