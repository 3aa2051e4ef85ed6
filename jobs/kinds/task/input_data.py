"""What a task reads: files and folders of HDFS, copied beside its program before that starts."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from jobs.errors import JobError

FOLDER = "data"
"""Below the task's folder: each path has its last name there."""
SPARE_BYTES = 64 << 20
"""Of the node's disk, which the data leaves free for what the program prints."""


def names(paths: Sequence[str]) -> Mapping[str, str]:
    """Each path by the name that it gets; JobError when two would have the same.

    >>> names(["hdfs:///data/digits/", "/labels.csv"])
    {'digits': 'hdfs:///data/digits', 'labels.csv': '/labels.csv'}
    """
    found: dict[str, str] = {}
    for path in (one.rstrip("/") for one in paths):
        name = PurePosixPath(path).name
        if name in found:
            raise JobError(
                f"{found[name]} and {path} would both be {FOLDER}/{name}", remedy="name a folder that has both"
            )
        found[name] = path
    return found


def check(filesystem: FileSystem, paths: Sequence[str]) -> None:
    """JobError when a path is not there or may not be read."""
    for path in names(paths).values():
        try:
            filesystem.check_readable(path)
        except HadoopError as error:
            raise JobError(f"the data {path} cannot be read: {error.message}", remedy="check the path") from error


def fetch(filesystem: FileSystem, paths: Sequence[str], folder: Path) -> list[str]:
    """Copy all below a task's folder; in words what came. OSError when the disk has no room, HadoopError."""
    came = []
    for name, path in names(paths).items():
        amount = filesystem.amount(path)
        free = shutil.disk_usage(folder).free - SPARE_BYTES
        if amount.size_bytes > free:
            needed, there = f"{amount.size_bytes / 1e6:,.0f} MB", f"{max(free, 0) / 1e6:,.0f} MB"
            raise OSError(errno.ENOSPC, f"the data {path} has {needed}, and this node's disk has {there} free")
        (folder / FOLDER).mkdir(exist_ok=True)
        filesystem.download(path, folder / FOLDER / name)
        came.append(f"{path}: {amount.files} files, {amount.size_bytes:,} bytes")
    return came
