"""What is kept of a task in HDFS: its log piece by piece, whatever has become of its node, and why it has that node."""

from __future__ import annotations

import json

from hadoop.rest.pages import NotKnown
from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.tasks import Task, TaskDecision, TaskLogPiece
from jobs.application.logs import STREAMS
from jobs.dashboard.sources.hdfs import task_folder
from jobs.dashboard.sources.lines import MOST_BYTES, whole_lines
from jobs.kinds.task.settings import DECISION


def log_piece(hdfs: WebHdfs, task: Task, stream: str, attempt: int | None, offset: int) -> TaskLogPiece:
    """What a start of a task wrote to `stream` from byte `offset` on, of the last start if none is named; HadoopError.

    It is empty as long as there is nothing.
    """
    if stream not in STREAMS:
        raise InvalidInput(f"stream is {stream!r}: it must be one of {', '.join(STREAMS)}", "stream")
    wanted = attempt or task.attempt or 1
    path = f"{task_folder(hdfs, task)}/{stream}.{wanted}"
    try:
        content = hdfs.read_from(path, offset, MOST_BYTES + 1)
    except NotKnown:
        content = b""
    shown = whole_lines(content, MOST_BYTES, task.state.is_final or wanted < (task.attempt or 1))
    return TaskLogPiece(
        task_id=task.task_id,
        state=task.state,
        stream=stream,
        attempt=wanted,
        offset=offset,
        next=offset + len(shown),
        more=len(content) > MOST_BYTES,
        text=shown.decode(errors="replace"),
    )


def decision(hdfs: WebHdfs, task: Task, attempt: int | None) -> TaskDecision:
    """Why a start of a task has its node, the last start if none is named; NotFound before it has one, HadoopError."""
    number = attempt or task.attempt or 1
    try:
        return TaskDecision.from_json(json.loads(hdfs.read(f"{task_folder(hdfs, task)}/{DECISION}.{number}")))
    except (NotKnown, ValueError, KeyError, TypeError):
        raise NotFound(
            f"why start {number} of {task.task_id} has its node is not known",
            remedy="it is noted once the task has begun",
        ) from None
