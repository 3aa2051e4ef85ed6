"""Checkpoints in a folder: written beside their work, whole or not at all.

A file is named by the steps that its state has and by its hash: STEPS-SHA256.state. One whose hash is wrong is renamed
to NAME.damaged. Several processes may share a folder; standard library only, as launchers have no PyTorch.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from learning.errors import LearningError

KEPT = 2
"""So many of the newest ones stay, whatever has been confirmed."""
WANTED = "wanted"
"""The file in which a member says which checkpoint it lacks; whoever has it lays it into the folder."""
FETCH_SECONDS = 300.0
"""As large as states are, and as slow as networks."""
PAUSE_SECONDS = 0.1
DRAFT_SECONDS = 600.0
"""After which nobody writes on at a draft: whoever did was killed."""
_NAME = re.compile(r"([0-9]{1,15})-([0-9a-f]{64})\.state")
_DRAFT = re.compile(rf"\.{_NAME.pattern}(\.[0-9a-f]+)?")


class Interrupted(Exception):
    """The generation that a checkpoint was read for is over."""


def steps_of(name: str) -> int | None:
    """The steps of a checkpoint, None of other files.

    >>> steps_of("40-" + 64 * "a" + ".state"), steps_of("wanted")
    (40, None)
    """
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def is_whole(name: str, content: bytes) -> bool:
    """Whether this is what the checkpoint's name says."""
    match = _NAME.fullmatch(name)
    return match is not None and hashlib.sha256(content).hexdigest() == match[2]


def lay(folder: Path, name: str, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, even after a loss of power; OSError when it cannot be."""
    draft = folder / f".{name}.{secrets.token_hex(4)}"  # others may write the same state
    try:
        with draft.open("wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        draft.replace(folder / name)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    entry = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)


def put_aside(file: Path) -> None:
    """Rename a damaged checkpoint, so that nobody uses it again."""
    aside = file.with_name(f"{file.name}.damaged")
    try:
        file.replace(aside)
    except FileNotFoundError:  # another process did it
        return
    print(f"nodewise: the checkpoint {file} is damaged, and is now {aside.name}", flush=True)


class Checkpoints:
    """Of one member; `last` are the steps of the newest whole one that is on the disk, 0 without any.

    `failure` says why the newest attempt to write one failed, None if it did not.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: threading.Thread | None = None
        self._begun = 0
        self.failure: LearningError | None = None
        self._remove_drafts()
        self.last = self._newest_whole()

    @property
    def is_writing(self) -> bool:
        """Whether one is being written."""
        return self._writer is not None and self._writer.is_alive()

    def unconfirmed(self, confirmed: int) -> int:
        """How many there are that are newer than the one after `confirmed` steps."""
        return sum(steps > confirmed for steps, _ in self._found())

    def write(self, steps: int, state: bytes, confirmed: int) -> None:
        """Begin to write one, unless the one before is not written yet.

        Then those are removed that are older than the one after `confirmed` steps, but never the newest two.
        """
        if not self.is_writing:
            self._begun = steps
            self._writer = threading.Thread(target=self._write, args=(steps, state, confirmed), name="checkpoint")
            self._writer.start()

    def settle(self) -> None:
        """Until what was begun is on the disk, or failed."""
        if self._writer is not None:
            self._writer.join()

    def wait(self) -> None:
        """Until what was begun is on the disk; LearningError when that failed."""
        self.settle()
        if self.failure is not None and self.last < self._begun:
            raise self.failure

    def read(self, steps: int, is_over: Callable[[], bool]) -> bytes:
        """The state after so many steps, which others are asked for when it is not here, or damaged.

        LearningError when nobody brings it, Interrupted when `is_over()` meanwhile.
        """
        try:
            state = self._read(steps)
            return self._fetch(steps, is_over) if state is None else state
        except OSError as error:
            raise LearningError(
                f"the checkpoint after {steps} steps cannot be read in {self._folder} ({_reason(error)})",
                "let the program read and write in this folder, on a disk that has room",
            ) from error

    def _read(self, steps: int) -> bytes | None:
        for found, file in self._found():
            if found == steps and (content := _whole(file)) is not None:
                return content
        return None

    def _fetch(self, steps: int, is_over: Callable[[], bool]) -> bytes:
        wanted = self._folder / WANTED
        wanted.write_text(str(steps))
        try:
            until = time.monotonic() + FETCH_SECONDS
            while time.monotonic() < until:
                if is_over():
                    raise Interrupted(f"the checkpoint after {steps} steps is not needed any more")
                if (state := self._read(steps)) is not None:
                    return state
                time.sleep(PAUSE_SECONDS)
        finally:
            wanted.unlink(missing_ok=True)
        raise LearningError(
            f"no whole checkpoint after {steps} steps is in {self._folder}",
            "start the run again: it goes on from the newest one that is whole",
        )

    def _write(self, steps: int, state: bytes, confirmed: int) -> None:
        try:
            lay(self._folder, f"{steps}-{hashlib.sha256(state).hexdigest()}.state", state)
            self.last = steps
            self._remove_drafts()
            self._prune(confirmed)
        except Exception as error:  # whatever it is, the thread must not hide it
            self.failure = LearningError(
                f"checkpoints cannot be kept in {self._folder} ({_reason(error)})",
                "make room on its disk, and let the program write there",
            )
        else:
            self.failure = None

    def _prune(self, confirmed: int) -> None:
        found = self._found()
        newest = sorted({steps for steps, _ in found})[-KEPT:]
        for steps, file in found:
            if steps < confirmed and steps not in newest:
                file.unlink(missing_ok=True)

    def _newest_whole(self) -> int:
        for steps, file in self._found():
            if _whole(file) is not None:
                return steps
        return 0

    def _remove_drafts(self) -> None:
        for file in self._folder.iterdir():
            if _DRAFT.fullmatch(file.name) and _age(file) > DRAFT_SECONDS:
                file.unlink(missing_ok=True)

    def _found(self) -> list[tuple[int, Path]]:
        """All by their names, the newest first."""
        named = [(steps_of(file.name), file) for file in self._folder.iterdir()]
        return sorted(((steps, file) for steps, file in named if steps is not None), reverse=True)


def _whole(file: Path) -> bytes | None:
    """What a checkpoint holds; None when it is gone, or damaged: then it is put aside."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    if is_whole(file.name, content):
        return content
    put_aside(file)
    return None


def _reason(error: Exception) -> str:
    """Without the path of an OSError, which may change with each attempt."""
    return (isinstance(error, OSError) and error.strerror) or repr(error)


def _age(file: Path) -> float:
    """Seconds since it was written; 0 of one that is gone."""
    try:
        return time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return 0.0
