"""The last runs of every slot, kept on the node so that they outlive the agent."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from infosvc.wire.answers import PastRun

KEPT_RUNS = 20
STDERR_LIMIT = 4096  # bytes kept of what a run complained
VALUE_LIMIT = 4096  # characters kept of what it printed
_SLACK = 5  # a file grows to so many times KEPT_RUNS before it is cut
_MAX_FILE_BYTES = 1024 * 1024

log = logging.getLogger(__name__)


class RunLog:
    """One file a slot, a line a run; `add` may be called from one thread while others call `runs`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lines: dict[str, int] = {}
        self._complained = False
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def add(self, data_name: str, run: PastRun) -> None:
        """Keep a run; when the disk takes no more, the log has a gap and the agent goes on."""
        file = self._file(data_name)
        line = json.dumps(run.to_json(), separators=(",", ":")) + "\n"
        try:
            if self._lines.get(data_name, 0) >= _SLACK * KEPT_RUNS or self._is_long(data_name, file):
                self._cut(data_name, file)
            with file.open("a") as lines:
                lines.write(line)
            self._lines[data_name] = self._lines.get(data_name, 0) + 1
            self._complained = False
        except OSError as error:
            if not self._complained:
                log.warning("%s cannot be written (%s): runs are missing in the slots' logs", file, error.strerror)
            self._complained = True

    def runs(self, data_name: str) -> list[PastRun]:
        """The last runs of a slot, newest first."""
        return [run for line in reversed(_last_lines(self._file(data_name))) for run in _parse_line(line)][:KEPT_RUNS]

    def keep_only(self, data_names: Collection[str]) -> None:
        """Remove the logs of all other slots; from the thread that calls `add`."""
        for file in self._directory.glob("*.jsonl"):
            name = file.name.removesuffix(".jsonl")
            if name not in data_names:
                self._lines.pop(name, None)
                with suppress(OSError):
                    file.unlink()

    def _is_long(self, data_name: str, file: Path) -> bool:
        """Whether a file is too long already: one that an agent before left, or one with long lines."""
        if self._lines.get(data_name, 0) % KEPT_RUNS:
            return False
        return file.exists() and (data_name not in self._lines or file.stat().st_size > _MAX_FILE_BYTES)

    def _cut(self, data_name: str, file: Path) -> None:
        lines = _last_lines(file)[-KEPT_RUNS:]
        new = file.with_name(f".{file.name}.new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.replace(file)
        self._lines[data_name] = len(lines)

    def _file(self, data_name: str) -> Path:
        return self._directory / f"{data_name}.jsonl"


def clip(stderr: bytes) -> str:
    """The end of what a run complained, as the log keeps it."""
    return stderr[-STDERR_LIMIT:].decode("utf-8", "replace")


def _last_lines(file: Path) -> list[str]:
    """The last lines of a file, none when there is no file."""
    with suppress(OSError), file.open("rb") as content:
        size = content.seek(0, os.SEEK_END)
        content.seek(max(size - _MAX_FILE_BYTES, 0))
        return content.read(_MAX_FILE_BYTES).decode("utf-8", "replace").splitlines()
    return []


def _parse_line(line: str) -> list[PastRun]:
    """The run of a line; nothing for one that a full disk cut off."""
    try:
        return [PastRun.from_json(json.loads(line))]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
