"""Paths of HDFS as people write them in the dashboard."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from infosvc.wire.errors import InvalidInput

_HDFS = re.compile(r"^hdfs:(//[^/]*)?(?=/)")


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
