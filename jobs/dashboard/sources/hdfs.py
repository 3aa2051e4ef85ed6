"""Paths of HDFS: as people write them in the dashboard, and where things are kept."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.errors import InvalidInput
from infosvc.wire.tasks import Task
from jobs.kinds.task.settings import FOLDER

_HDFS = re.compile(r"^hdfs:(//[^/]*)?(?=/)")


def task_folder(hdfs: WebHdfs, task: Task) -> str:
    """The folder that has what is kept of a task; HadoopError."""
    return f"{hdfs.home()}/.nodewise/{FOLDER}/{task.task_id}"


def plain_path(said: str) -> str:
    """A path without scheme and host, as HDFS has it; InvalidInput for what is not an absolute path.

    >>> plain_path("hdfs:///data/images/")
    '/data/images'
    """
    path = PurePosixPath(_HDFS.sub("", said.strip()))
    if not path.is_absolute() or ".." in path.parts or "\0" in said:
        raise InvalidInput(
            f"{said!r} is not a path of HDFS", "path", remedy="write it like /data/images or hdfs:///data/images"
        )
    return f"/{str(path).lstrip('/')}"
