"""What a task's program has reported as curves, as its runner has noted it in HDFS.

All that a name has is in an array with three numbers for each value: step, moment and value. A start may report a
million values, and as records these would fill the service.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import lt

from hadoop.rest.pages import NotKnown
from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.errors import InvalidInput
from infosvc.wire.tasks import MOST_POINTS, Task, TaskCurve, TaskValues
from jobs.dashboard.sources.hdfs import task_folder
from jobs.kinds.task.reported import MOST_NAMES, VALUES, choose_evenly, read_notes
from jobs.kinds.task.using import USED

MOST_BYTES = 64 * 2**20
"""Of one answer: at least all that one start may report."""
PIECE_BYTES = 2 * 2**20
LEAST_POINTS = 2
REPORTED = "reported"
STREAMS: Mapping[str, str] = {REPORTED: VALUES, USED: USED}
"""What can be asked for, and the files of HDFS that have it."""
ROW = 3

Series = dict[str, "array[float]"]
"""By name."""


def curves(hdfs: WebHdfs, task: Task, attempt: int | None, points: int, of: str = REPORTED) -> TaskValues:
    """What a start of a task reported, or all of them joined: each counts up to the first step of the next.

    With `of` "used" it is what its program used. There is no curve as long as nothing is known. InvalidInput,
    HadoopError.
    """
    if of not in STREAMS:
        raise InvalidInput(f"there are no values {of!r}: ask for {' or '.join(STREAMS)}", "of")
    if not LEAST_POINTS <= points <= MOST_POINTS:
        raise InvalidInput(f"points is {points}: it must be between {LEAST_POINTS} and {MOST_POINTS}", "points")
    starts = [attempt] if attempt else range(task.attempt or 1, 0, -1)
    found, whole = _join_starts(hdfs, f"{task_folder(hdfs, task)}/{STREAMS[of]}", starts)
    answered = tuple(curve(name, found[name], points) for name in sorted(found))
    return TaskValues(task.task_id, task.state, attempt, whole, answered)


def _join_starts(hdfs: WebHdfs, stream: str, starts: Sequence[int]) -> tuple[Series, bool]:
    """The starts, of which the last comes first, and whether there was room for all."""
    found: Series = {}
    left = MOST_BYTES
    for number in starts:
        earlier, size = _read_start(hdfs, f"{stream}.{number}", left)
        if size > left:
            return found, False
        left -= size
        for name, rows in earlier.items():
            if name in found or len(found) < MOST_NAMES:
                found[name] = join(ordered(rows), found.get(name, array("d")))
    return found, True


def _read_start(hdfs: WebHdfs, path: str, most: int) -> tuple[Series, int]:
    """What one start reported, and from how many bytes; more than `most` when there are more."""
    found: Series = {}
    offset = 0
    while offset <= most:
        try:
            content = hdfs.read_from(path, offset, PIECE_BYTES)
        except NotKnown:
            break
        lines = content[: content.rfind(b"\n") + 1]
        for at, name, step, value in read_notes(lines):
            if name in found or len(found) < MOST_NAMES:
                found.setdefault(name, array("d")).extend((step, at, value))
        offset += len(lines) or len(content)
        if len(content) < PIECE_BYTES:
            break
    return found, offset


def ordered(rows: array[float]) -> array[float]:
    """Rows by step, of each step the one that was reported last."""
    steps = rows[::ROW]
    if all(map(lt, steps, steps[1:])):  # as nearly always
        return rows
    last = {step: place for place, step in enumerate(steps)}
    return _choose(rows, [last[step] for step in sorted(last)])


def join(early: array[float], later: array[float]) -> array[float]:
    """Ordered rows up to where a later start began, and what that reported.

    >>> join(array("d", [1, 10, 0.9, 2, 11, 0.8]), array("d", [2, 20, 0.7])).tolist()
    [1.0, 10.0, 0.9, 2.0, 20.0, 0.7]
    """
    return early[: bisect_left(early[::ROW], later[0]) * ROW] + later if later else early


def curve(name: str, rows: array[float], most: int) -> TaskCurve:
    """Ordered rows as they are answered, with at most so many points."""
    count, values = len(rows) // ROW, rows[ROW - 1 :: ROW]
    chosen = _choose(rows, choose_evenly(count, most))
    points = tuple((int(step), at, value) for step, at, value in zip(*[iter(chosen)] * ROW, strict=True))
    return TaskCurve(name, values[-1], min(values), max(values), count, points)


def _choose(rows: array[float], places: Sequence[int]) -> array[float]:
    return array("d", [number for one in places for number in rows[one * ROW : one * ROW + ROW]])
