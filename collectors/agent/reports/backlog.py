"""Runs that wait on disk while the service does not take them: bounded, oldest first, kept over a restart."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infosvc.wire.records import Run

MAX_GAP_SECONDS = 7 * 86_400.0  # the longest time that a wall clock may claim to have passed
_BLOCK_BYTES = 4096  # what even a small file takes of a disk
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Ended = tuple[Run, float]  # a run and the monotonic second at which it ended

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Segment:
    """A file of runs: its name tells its place in the queue and how many runs it holds."""

    number: int
    count: int
    size: int

    @property
    def name(self) -> str:
        """As it lies in the directory."""
        return f"{self.number:012d}-{self.count}.jsonl"


@dataclass(frozen=True)
class Clocks:
    """`monotonic` runs on over a restart of the agent, not of the machine, whose boot has the name `boot`."""

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    boot: str


def boot_name() -> str:
    """The kernel's name for this boot of the machine; one that no other process knows where there is none."""
    try:
        return _BOOT_ID.read_text().strip() or uuid.uuid4().hex
    except OSError:
        return uuid.uuid4().hex


class Backlog:
    """Segments in a directory, at most `limit` bytes; OSError where the disk refuses. `dropped` counts lost runs."""

    def __init__(self, directory: Path, limit: int, clocks: Clocks) -> None:
        self._directory = directory
        self._limit = limit
        self._clocks = clocks
        self._segments = _find_segments(directory)
        self._full = False
        self.dropped = 0

    def __bool__(self) -> bool:
        return bool(self._segments)

    def __contains__(self, number: int) -> bool:
        return any(segment.number == number for segment in self._segments)

    def keep(self, runs: Sequence[Ended]) -> int:
        """Write runs to the end of the queue in one step, return the number of their segment; the oldest may go."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = self._to_bytes(runs)
        number = self._segments[-1].number + 1 if self._segments else 1
        segment = Segment(number, len(runs), _on_disk(len(text)))
        new = self._directory / "new"
        try:
            new.write_bytes(text)
            new.replace(self._directory / segment.name)
        except OSError:
            with suppress(OSError):
                new.unlink()
            raise
        self._segments.append(segment)
        while sum(each.size for each in self._segments) > self._limit and len(self._segments) > 1:
            if not self._full:
                log.warning("the spool is full: from now on the oldest runs are dropped")
            self._full = True
            self._drop(self._segments[0])
        return number

    def first(self) -> tuple[int, list[Ended]] | None:
        """The oldest segment that can be read: its number and its runs; None when there is none."""
        while self._segments:
            segment = self._segments[0]
            try:
                return segment.number, list(self._read((self._directory / segment.name).read_text()))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                log.warning("%d runs of the spool are lost: %s cannot be read (%s)", segment.count, segment.name, error)
                self._drop(segment)
        return None

    def remove(self, number: int) -> None:
        """The service has these runs."""
        for segment in [segment for segment in self._segments if segment.number == number]:
            self._full = False
            self._segments.remove(segment)
            with suppress(OSError):
                (self._directory / segment.name).unlink()

    def _drop(self, segment: Segment) -> None:
        self.dropped += segment.count
        self._segments.remove(segment)
        with suppress(OSError):
            (self._directory / segment.name).unlink()

    def _to_bytes(self, runs: Sequence[Ended]) -> bytes:
        head = {"boot": self._clocks.boot, "monotonic": self._clocks.monotonic(), "wall": self._clocks.wall()}
        lines = [head, *([ended, run.to_json()] for run, ended in runs)]
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()

    def _read(self, text: str) -> Iterator[Ended]:
        lines = text.splitlines()
        head = json.loads(lines[0]) if lines else {}
        now = self._clocks.monotonic()
        for line in lines[1:]:
            ended, run = json.loads(line)
            yield Run.from_json(run), now - self._age(head, float(ended), now)

    def _age(self, head: dict[str, float | str], ended: float, now: float) -> float:
        """Seconds since a run ended: by the monotonic clock, or if the machine started since, by the wall clock too.

        A wall clock may have been set meanwhile, so what it claims is held between the time that this machine is up
        and a week.
        """
        written = float(head["monotonic"])
        if head["boot"] == self._clocks.boot:
            return min(max(now - ended, 0.0), MAX_GAP_SECONDS + now)
        gap = min(self._clocks.wall() - float(head["wall"]), MAX_GAP_SECONDS)
        return max(written - ended, 0.0) + max(gap, now, 0.0)


def _on_disk(size: int) -> int:
    return max(size, _BLOCK_BYTES)


def _find_segments(directory: Path) -> list[Segment]:
    """What an agent before left there, in order."""
    segments = []
    with suppress(OSError):
        for file in directory.iterdir():
            number, _, count = file.name.removesuffix(".jsonl").partition("-")
            if number.isdecimal() and count.isdecimal():
                segments.append(Segment(int(number), int(count), _on_disk(file.stat().st_size)))
    return sorted(segments, key=lambda segment: segment.number)
