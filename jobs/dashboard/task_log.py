"""The log of a task piece by piece, as its runner has put it into HDFS, whatever has become of its node."""

from __future__ import annotations

from hadoop.rest.pages import NotKnown
from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.errors import InvalidInput
from infosvc.wire.tasks import Task, TaskLogPiece
from jobs.application.logs import STREAMS
from jobs.dashboard.log_pieces import MOST_BYTES, whole_lines


def piece(hdfs: WebHdfs, task: Task, stream: str, attempt: int | None, offset: int) -> TaskLogPiece:
    """What a start of a task wrote to `stream` from byte `offset` on, of the last start if none is named; HadoopError.

    It is empty as long as there is nothing.
    """
    if stream not in STREAMS:
        raise InvalidInput(f"stream is {stream!r}: it must be one of {', '.join(STREAMS)}", "stream")
    wanted = attempt or task.attempt or 1
    path = f"{hdfs.home()}/.nodewise/tasks/{task.task_id}/{stream}.{wanted}"
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
