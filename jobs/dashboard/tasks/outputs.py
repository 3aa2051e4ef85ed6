"""What a task left in HDFS: which files, and each of them piece by piece."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.tasks import OutputFile, Task, TaskOutputs, TaskState
from jobs.dashboard.sources.hdfs import plain_path

MOST_FILES = 10_000
MOST_FOLDERS = 1_000
PIECE_BYTES = 4 << 20


class Piece(NamedTuple):
    """Bytes of a file; `next` is the byte to ask on with, None at its end."""

    content: bytes
    next: int | None


def listing(hdfs: WebHdfs, task: Task) -> TaskOutputs:
    """The files that a task left, by path; NotFound when it has left none, HadoopError."""
    folder = _folder(task)
    files, whole = _walk(hdfs, folder)
    return TaskOutputs(task.task_id, folder, tuple(sorted(files, key=lambda one: one.path)), whole)


def piece(hdfs: WebHdfs, task: Task, name: str, offset: int) -> Piece:
    """A piece of a file, named by its path below the output; NotFound, InvalidInput, HadoopError."""
    if not name or name.startswith("/") or {"", ".", ".."} & set(name.split("/")):
        raise InvalidInput(f"path is {name!r}: it must be that of a file below the output", "path")
    path = f"{_folder(task)}/{name}"
    status = hdfs.status(path)
    if status is None or status["type"] != "FILE":
        raise NotFound(f"the task left no file {name}", "path", remedy="`nodewise task outputs ls` lists them")
    length = int(status["length"])
    content = hdfs.read_from(path, offset, PIECE_BYTES) if offset < length else b""
    end = offset + len(content)
    return Piece(content, end if content and end < length else None)


def _folder(task: Task) -> str:
    """The output as a plain path. Only what the task itself put in place is shown: then nothing was there before."""
    if task.spec.output is None:
        raise NotFound(f"{task.task_id} names no output", remedy="name one by --output when you submit it")
    if task.state is not TaskState.SUCCEEDED:
        raise NotFound(f"{task.task_id} has no output, for it is {task.state}", remedy="wait until it has succeeded")
    return plain_path(task.spec.output.rstrip("/"))


def _walk(hdfs: WebHdfs, folder: str) -> tuple[list[OutputFile], bool]:
    """The files below a folder, and whether these are all: a task may leave very many."""
    files: list[OutputFile] = []
    waiting = deque([""])
    for _ in range(MOST_FOLDERS):
        below = waiting.popleft()
        for status in hdfs.list_folder(f"{folder}/{below}".rstrip("/")):
            name = f"{below}{status['pathSuffix']}"
            if status["type"] == "DIRECTORY":
                waiting.append(f"{name}/")
            elif len(files) < MOST_FILES:
                files.append(OutputFile(name, int(status["length"]), status.get("modificationTime", 0) / 1000))
            else:
                return files, False
        if not waiting:
            return files, True
    return files, False
