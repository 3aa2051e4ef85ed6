"""Checkpoints that are carried from a member's folder to HDFS, and back to members that lack one.

HDFS keeps what the member keeps, and the newest two: the member knows what the run may still go on from.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from hdfs_native import Client, WriteOptions

from learning.state.checkpoints import KEPT, WANTED, is_whole, lay, put_aside, steps_of

ASK_SECONDS = 1.0


class Carried:
    """`folder` is the member's, `stored` that in HDFS. What HDFS does not take is tried again the next time."""

    def __init__(self, folder: Path, stored: str) -> None:
        self._folder = folder
        self._stored = stored
        self._client = Client()
        self._known: set[str] = set()
        self._ask_at = time.monotonic()

    def carry(self) -> bool:
        """Store what is new in the folder, and drop what the member has dropped; whether HDFS has it all now."""
        for file in self._files():
            if file.name not in self._known:
                try:
                    self._store(file)
                except Exception as error:  # whatever the client raises
                    print(f"the checkpoint {file.name} cannot be stored now: {error}", flush=True)
                    return False
        return True

    def fetch_newest(self) -> None:
        """Lay the newest stored checkpoint that is whole into the folder, if there is one."""
        self._fetch_first(reversed(self._names()))

    def serve(self) -> None:
        """Fetch the checkpoint that the member says it lacks; again and again until it has it, or asks no more."""
        steps = self._wanted()
        if steps is None or time.monotonic() < self._ask_at:
            return
        self._ask_at = time.monotonic() + ASK_SECONDS
        try:
            self._fetch_first(name for name in self._names() if steps_of(name) == steps)
        except Exception as error:  # whatever the client raises
            print(f"the checkpoint after {steps} steps cannot be fetched now: {error}", flush=True)

    def _wanted(self) -> int | None:
        """Steps of the checkpoint that the member asks for and that is not in its folder."""
        try:
            steps = int((self._folder / WANTED).read_text())
        except (OSError, ValueError):  # a file without a number is just being written
            return None
        return None if any(steps_of(file.name) == steps for file in self._files()) else steps

    def _store(self, file: Path) -> None:
        try:
            content = file.read_bytes()
        except FileNotFoundError:  # dropped meanwhile
            return
        if not is_whole(file.name, content):
            put_aside(file)
            return
        draft = f"{self._stored}/.{file.name}"
        self._client.mkdirs(self._stored, create_parent=True)
        with self._client.create(draft, WriteOptions(overwrite=True, permission=0o640)) as sink:
            sink.write(content)
        self._client.rename(draft, f"{self._stored}/{file.name}", overwrite=True)
        self._known.add(file.name)
        self._drop()

    def _drop(self) -> None:
        """Also the drafts of launchers that were killed."""
        kept = min(map(_steps, self._files()), default=0)
        listed = self._listed()
        drafts = [name for name in listed if name.startswith(".")]
        for name in [*_checkpoints(listed)[:-KEPT], *drafts]:
            if (steps_of(name.removeprefix(".")) or kept) < kept:
                self._client.delete(f"{self._stored}/{name}")

    def _fetch_first(self, names: Iterable[str]) -> None:
        """The first of them that is whole."""
        for name in names:
            if self._fetch(name):
                return

    def _fetch(self, name: str) -> bool:
        """Whether it is in the folder now; a damaged one is renamed in HDFS, too."""
        file = f"{self._stored}/{name}"
        try:
            content = self._client.read(file).read()
        except FileNotFoundError:  # dropped meanwhile
            return False
        if not is_whole(name, content):
            print(f"the checkpoint {file} is damaged, and is now {name}.damaged", flush=True)
            self._client.rename(file, f"{file}.damaged", overwrite=True)
            return False
        self._known.add(name)
        lay(self._folder, name, content)
        return True

    def _files(self) -> list[Path]:
        """The member's checkpoints, the newest first."""
        found = [file for file in self._folder.iterdir() if steps_of(file.name) is not None]
        return sorted(found, key=_steps, reverse=True)

    def _names(self) -> list[str]:
        """Of the stored ones, the oldest first."""
        return _checkpoints(self._listed())

    def _listed(self) -> list[str]:
        try:
            return [Path(one.path).name for one in self._client.list_status(self._stored)]
        except FileNotFoundError:
            return []


def _checkpoints(names: Iterable[str]) -> list[str]:
    """Those of checkpoints, the oldest first."""
    found = [Path(name) for name in names if steps_of(name) is not None]
    return [file.name for file in sorted(found, key=_steps)]


def _steps(file: Path) -> int:
    """Of a checkpoint."""
    return steps_of(file.name) or 0
