"""The folder that a packing fills: it stands under its name when all is there, and nothing is left where it is not."""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath

import psutil

from hadoop.errors import HadoopError
from hadoop.rest.webhdfs_writing import WritableHdfs
from jobs.errors import JobError

NAME = "images-{:05}"
ALONE = "_alone"
"""In a folder of packs: the names of those images that lie there as files, one a line; there if there are any."""
ABANDONED_S = 86_400.0
"""When nothing new came into a folder for so long, its packing has ended, on whatever machine it ran."""
_OF_A_PACK = re.compile(r"images-\d{5,}\.(rec|idx|lst|len)")
_STAGING, _REPLACED = "packing", "replaced"


@contextmanager
def place(client: WritableHdfs, target: PurePosixPath, overwrite: bool = False) -> Iterator[PurePosixPath]:
    """A folder beside the target, which becomes it in the end, or is taken away; jobs pass over its name.

    What packings left behind that were killed is taken away, too. JobError: a target that holds something, unless
    that is a pack and `overwrite` says to replace it.
    """
    _check(client, target, overwrite)
    _clear(client, target, _STAGING)
    staging = _beside(target, _STAGING)
    client.make_folder(str(staging))
    try:
        yield staging
        _check(client, target, overwrite)  # somebody else may have written there meanwhile
        _put(client, staging, target)
    except BaseException:
        _take_away(client, staging)
        raise
    _clear(client, target, _REPLACED)


def _check(client: WritableHdfs, target: PurePosixPath, overwrite: bool) -> None:
    if not target.name:
        raise JobError(f"images cannot be packed into {target} itself", remedy="name a folder below it")
    status = client.status(str(target))
    if status is None:
        return
    if status["type"] != "DIRECTORY":
        raise JobError(f"{target} is a file in HDFS", remedy="name a folder")
    held = [str(one["pathSuffix"]) for one in client.list_folder(str(target))]
    if overwrite:
        _check_pack(client, target, held)
    elif held:
        remedy = ", or replace the pack with --overwrite" if any(map(_OF_A_PACK.fullmatch, held)) else ""
        raise JobError(
            f"{target} already holds {held[0]} ({len(held)} names in all)", remedy=f"pack into a new folder{remedy}"
        )


def _check_pack(client: WritableHdfs, target: PurePosixPath, held: list[str]) -> None:
    """JobError when anything is there that no packing wrote."""
    alone = set[str]()
    if ALONE in held:
        alone = set(client.read(str(target / ALONE)).decode().split("\n"))
    for name in client.files_below(str(target)):
        if not (_OF_A_PACK.fullmatch(name) or name == ALONE or name in alone):
            raise JobError(
                f"{target} holds {name}, which is not from a pack; nothing was changed",
                remedy="pack into a new folder",
            )


def _put(client: WritableHdfs, staging: PurePosixPath, target: PurePosixPath) -> None:
    """Move a folder to where there may be one; between two steps there is none, and if the second fails the old one."""
    if client.status(str(target)) is None:
        client.rename(str(staging), str(target))
        return
    old = _beside(target, _REPLACED)
    client.rename(str(target), str(old))
    try:
        client.rename(str(staging), str(target))
    except BaseException:
        with suppress(HadoopError):
            # Into a folder that is there after all it would be moved.
            if client.status(str(target)) is None:
                client.rename(str(old), str(target))
        raise
    _take_away(client, old)


def _beside(target: PurePosixPath, kind: str) -> PurePosixPath:
    """A name that tells which process of which machine it belongs to."""
    return target.parent / f"_{target.name}.{kind}-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def _clear(client: WritableHdfs, target: PurePosixPath, kind: str) -> None:
    """Take away what others like this left behind, as their names tell."""
    pattern = re.compile(rf"_{re.escape(target.name)}\.{kind}-(?P<machine>.+)-(?P<process>\d+)-[0-9a-f]{{8}}")
    if client.status(str(target.parent)) is None:
        return
    for status in client.list_folder(str(target.parent)):
        name = str(status["pathSuffix"])
        left = pattern.fullmatch(name)
        if left and _has_ended(left["machine"], int(left["process"]), status["modificationTime"] / 1000):
            _take_away(client, target.parent / name)


def _has_ended(machine: str, process: int, changed_at: float) -> bool:
    here = machine == socket.gethostname()
    return (here and not psutil.pid_exists(process)) or time.time() - changed_at > ABANDONED_S


def _take_away(client: WritableHdfs, folder: PurePosixPath) -> None:
    with suppress(HadoopError):
        client.delete(str(folder))
