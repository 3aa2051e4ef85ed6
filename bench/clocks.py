"""Clocks of single machines of a local cluster, which jump while the machine's own clock stands: by libfaketime.

Each machine (the master, and each node) has a file with its offset, which all processes there read once a second.
Timed waits go by the monotonic clock, which no jump changes, as on a real machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.info.errors import BenchError
from hadoop.local import daemons

LIBRARY = "faketime/libfaketimeMT.so.1"
MASTER = "master"


@dataclass(frozen=True)
class Clocks:
    """The offsets in a folder; None as a machine is the master."""

    folder: Path
    library: Path

    def environment(self, machine: str | None) -> dict[str, str]:
        """The variables with which a process has the clock of a machine."""
        if not self._file(machine).exists():
            self.put(machine, 0)
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file(machine)),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # without it the JVM's timed waits return at once
        }

    def put(self, machine: str | None, seconds: float) -> None:
        """Put the clock of a machine so far before the real one, or behind it when negative."""
        new = self._file(machine).with_suffix(".new")
        new.write_text(f"{seconds:+.0f}\n")
        new.replace(self._file(machine))  # a reader finds one offset or the other, never half of one

    def put_right(self) -> None:
        """Give every machine the real time again."""
        for file in self.folder.glob("*.offset"):
            self.put(file.stem, 0)

    def _file(self, machine: str | None) -> Path:
        return self.folder / f"{machine or MASTER}.offset"


@contextmanager
def jumping_clocks() -> Iterator[Clocks]:
    """Let every daemon that starts in this block, and what it starts, have the clock of its machine.

    BenchError when libfaketime is not installed.
    """
    library = next(Path("/usr/lib").glob(f"*/{LIBRARY}"), None)
    if library is None:
        raise BenchError("clocks that jump need libfaketime: apt-get install libfaketime")
    before = daemons.environment_of_machine
    with tempfile.TemporaryDirectory(prefix="bench-clocks-") as folder:
        clocks = Clocks(Path(folder), library)
        daemons.environment_of_machine = clocks.environment
        try:
            yield clocks
        finally:
            daemons.environment_of_machine = before
