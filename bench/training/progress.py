"""What the programs of a run have written down, and what follows from it: rates, pauses, shares, lost samples."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from locality.training.sample_order import SampleOrder

WINDOW_SECONDS = 60.0
"""After a fault, in which the pause is looked for."""


class Row(NamedTuple):
    """A process on a node knew at a second that so many steps are done, and its own samples of the last one.

    `seconds` are those of computing them, 0 where they were not measured.
    """

    node: int
    pid: int
    steps: int
    at: float
    samples: int
    seconds: float = 0.0


class Piece(NamedTuple):
    """Samples that a process computed for a step, in a generation."""

    pid: int
    step: int
    generation: int
    numbers: Sequence[int]


class Advance(NamedTuple):
    """So many steps were done at a second."""

    steps: int
    at: float


def read_rows(out: Path) -> list[Row]:
    """In the order of time; a line that is being written is left out."""
    rows = [Row(node, pid, *json.loads(line)) for node, pid, line in _lines(out, "steps")]
    return sorted(rows, key=lambda row: row.at)


def read_pieces(out: Path) -> list[Piece]:
    """Of all processes."""
    return [Piece(pid, *json.loads(line)) for _, pid, line in _lines(out, "parts")]


def _lines(out: Path, kind: str) -> Iterable[tuple[int, int, str]]:
    for file in sorted(out.glob(f"{kind}-*.jsonl")):
        _, node, pid = file.stem.split("-")
        for line in file.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield int(node), int(pid), line


def advances(rows: Sequence[Row]) -> list[Advance]:
    """When each step was done first, as whoever knew it first knew it; steps that are done again are left out.

    >>> advances([Row(0, 1, 0, 5.0, 0), Row(0, 1, 1, 6.0, 4), Row(1, 2, 1, 6.1, 4), Row(1, 2, 2, 7.0, 4)])
    [Advance(steps=0, at=5.0), Advance(steps=1, at=6.0), Advance(steps=2, at=7.0)]
    """
    found: list[Advance] = []
    for row in rows:
        if not found or row.steps > found[-1].steps:
            found.append(Advance(row.steps, row.at))
    return found


def steps_per_second(done: Sequence[Advance], first: int, last: int) -> float:
    """From the end of step `first` to the end of step `last`."""
    times = {one.steps: one.at for one in done}
    return (last - first) / (times[last] - times[first])


def steps_between(done: Sequence[Advance], begin: float, end: float) -> float:
    """Steps in a time, with parts of those at either edge.

    >>> steps_between([Advance(0, 0.0), Advance(1, 2.0), Advance(2, 4.0)], 1.0, 3.0)
    1.0
    """
    return _steps_at(done, end) - _steps_at(done, begin)


def _steps_at(done: Sequence[Advance], at: float) -> float:
    before = [one for one in done if one.at <= at]
    after = [one for one in done if one.at > at]
    if not before:
        return float(done[0].steps)
    if not after:
        return float(before[-1].steps)
    part = (at - before[-1].at) / (after[0].at - before[-1].at)
    return before[-1].steps + part * (after[0].steps - before[-1].steps)


def usual_seconds(done: Sequence[Advance], until: float, count: int = 20) -> float:
    """Of a step: the median of the last ones before a moment."""
    times = [one.at for one in done if one.at <= until][-count - 1 :]
    return median(after - before for before, after in pairwise(times))


def pause_seconds(rows: Sequence[Row], hit_at: float) -> float:
    """From a fault until the next step was done: the end of the longest time without a step that lasts beyond it.

    A step whose sum was complete when the fault came may still end after it.
    """
    times = [one.at for one in advances(rows)]
    gaps = [
        (after - before, after)
        for before, after in pairwise(times)
        if after > hit_at and before < hit_at + WINDOW_SECONDS
    ]
    return max(gaps)[1] - hit_at


def lost_seconds(rows: Sequence[Row], hit_at: float, ahead: int = 2) -> float:
    """From a fault until the work is further by so many steps, without what these take when nothing happens.

    So steps that are done again count, too.
    """
    done = advances(rows)
    had = max(one.steps for one in done if one.at <= hit_at)
    further = next(one.at for one in done if one.steps >= had + ahead)
    return max(0.0, further - hit_at - ahead * usual_seconds(done, hit_at))


def steps_again(rows: Sequence[Row], hit_at: float) -> int:
    """How many steps that were done at a fault were done once more after it."""
    had = max(row.steps for row in rows if row.at <= hit_at)
    old = {row.pid for row in rows if row.at <= hit_at}
    begun = [row.steps for row in rows if row.at > hit_at and row.pid not in old]
    return max(0, had - min(begun)) if begun else 0


def longest_gap(rows: Sequence[Row], begin: float, end: float) -> float:
    """The longest time without the end of a step, within a time."""
    times = [begin, *(one.at for one in advances(rows) if begin <= one.at <= end), end]
    return max(after - before for before, after in pairwise(times))


def shares_by_step(rows: Sequence[Row]) -> dict[int, dict[int, int]]:
    """For each step, by the number of steps done with it, the samples of each node."""
    found: dict[int, dict[int, int]] = {}
    for row in rows:
        if row.samples:
            found.setdefault(row.steps, {})[row.node] = row.samples
    return found


def speeds_of_last_steps(rows: Sequence[Row], count: int) -> dict[int, float]:
    """Samples a second of each node while it computed, over the last steps; nodes without samples are left out."""
    last = max(row.steps for row in rows)
    found: dict[int, tuple[int, float]] = {}
    for row in rows:
        if row.steps > last - count and row.samples:
            samples, seconds = found.get(row.node, (0, 0.0))
            found[row.node] = samples + row.samples, seconds + row.seconds
    return {node: samples / seconds for node, (samples, seconds) in found.items()}


def steps_until_fit(
    rows: Sequence[Row], changed_at: float, speeds: Mapping[int, float], batch: int, tolerance: float
) -> int | None:
    """Whole steps after a change until shares fit the new `speeds`, in any unit; None if they never do.

    Shares fit when nobody needs more than `tolerance` times what all need with the best shares.
    """
    begun = max(one.steps for one in advances(rows) if one.at <= changed_at) + 2
    best = batch / sum(speeds.values())
    for count, step in enumerate(sorted(one for one in shares_by_step(rows) if one >= begun)):
        shares = shares_by_step(rows)[step]
        if max(share / speeds[node] for node, share in shares.items() if node in speeds) <= tolerance * best:
            return count
    return None


def count_wrong_samples(pieces: Sequence[Piece], steps: Mapping[int, int], order: SampleOrder, until: int) -> int:
    """Samples that were missed or used twice in the steps below `until`, as they were applied.

    `steps` are those that each process knew as done, by its number. A step was applied in the last generation in which
    a process that knows it as done has computed for it. A process that was killed right after the sum of a step had no
    time to note that: its samples of that generation count where they are what the others lack.
    """
    sure: dict[int, list[Piece]] = {step: [] for step in range(until)}
    maybe: dict[int, list[Piece]] = {step: [] for step in range(until)}
    for piece in pieces:
        if piece.step < until:
            (sure if steps.get(piece.pid, 0) > piece.step else maybe)[piece.step].append(piece)
    return sum(_wrong(sure[step], maybe[step], order, step) for step in range(until))


def _wrong(sure: Sequence[Piece], maybe: Sequence[Piece], order: SampleOrder, step: int) -> int:
    applied = max((piece.generation for piece in sure), default=0)
    used = Counter(number for piece in sure if piece.generation == applied for number in piece.numbers)
    wanted = Counter(order.of_step(*order.locate(step)).tolist())
    own = Counter(number for piece in maybe if piece.generation == applied for number in piece.numbers)
    used += own & (wanted - used)
    return (wanted - used).total() + (used - wanted).total()
