"""Python environments of workers in HDFS, from where YARN lays them out on each node, once for all jobs."""

from __future__ import annotations

import io
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hadoop.client.filesystem import SPREAD_BYTES, FileSystem
from hadoop.errors import HadoopError
from jobs.application.environments.archive import PYTHON, Contents, contents, digest, pack
from jobs.errors import JobError

FOLDER = "/nodewise/env"
"""Where environments are published unless told otherwise."""
ARCHIVE_NAME = "worker-env"
"""The name under which a container finds the unpacked environment."""
LATEST = "latest"
"""What people write for the environment that was published last."""
_NAME = re.compile(r"worker-[0-9a-f]{16}\.tar\.gz")
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Published:
    """An environment in HDFS; `latest` tells whether jobs take it when they are told to take the latest."""

    path: str
    size_bytes: int
    published_at: float
    latest: bool


@dataclass(frozen=True)
class Publication:
    """What `publish` did; `made` is false when HDFS had the archive already."""

    path: str
    made: bool
    files: int
    size_bytes: int
    packed_bytes: int
    seconds: float


def is_published(env: str) -> bool:
    """Whether `env` means an archive, by a path or as the latest; else it is a name of what `env make` made."""
    return env == LATEST or "/" in env or env.endswith(".tar.gz")


def python_in(archive_name: str = ARCHIVE_NAME) -> str:
    """The interpreter, relative to the folder of a container that has the archive under this name."""
    return f"{archive_name}/{PYTHON}"


def publish(
    filesystem: FileSystem,
    environment: Path,
    progress: Callable[[int, int], None],
    folder: str = FOLDER,
) -> Publication:
    """Put an environment into HDFS, unless it is there, and make it the latest; everyone may read it.

    JobError when `environment` is not one that can travel; HadoopError when HDFS refuses.
    """
    begun = time.monotonic()
    found = contents(environment.absolute())
    path = f"{folder}/worker-{digest(found)}.tar.gz"
    _open_to_all(filesystem, folder)
    made = not filesystem.exists(path)
    if made:
        _write(filesystem, path, found, progress)
    filesystem.write(f"{folder}/{LATEST}", path.encode())
    packed = next(one.size_bytes for one in filesystem.entries(folder) if path.endswith(f"/{one.name}"))
    return Publication(path, made, len(found.members), found.size_bytes, packed, time.monotonic() - begun)


def latest(filesystem: FileSystem, folder: str = FOLDER) -> str | None:
    """The path of the environment that was published last, None when there is none."""
    if not filesystem.exists(f"{folder}/{LATEST}"):
        return None
    path = filesystem.read(f"{folder}/{LATEST}").decode()
    return path if filesystem.exists(path) else None


def resolve(filesystem: FileSystem, env: str, folder: str = FOLDER) -> str:
    """The path that a user means by `env`: the latest environment, or a path itself; JobError when there is none."""
    path = latest(filesystem, folder) if env == LATEST else env
    if path is None:
        raise JobError(
            f"no environment is in {folder} of HDFS", remedy="`nodewise env publish` puts the worker's there"
        )
    if not filesystem.exists(path):
        raise JobError(f"{path} is not in HDFS", remedy="`nodewise env publish` puts the worker's environment there")
    return path


def list_published(filesystem: FileSystem, folder: str = FOLDER) -> list[Published]:
    """All environments in HDFS, the oldest first."""
    newest = latest(filesystem, folder)
    found = [
        Published(f"{folder}/{one.name}", one.size_bytes, one.modified_at, f"{folder}/{one.name}" == newest)
        for one in filesystem.entries(folder)
        if _NAME.fullmatch(one.name)
    ]
    return sorted(found, key=lambda one: one.published_at)


def remove(filesystem: FileSystem, name: str, folder: str = FOLDER) -> str:
    """Take an environment out of HDFS and return its path; JobError when there is none of this name.

    Containers that have it keep it; those that start later on another node cannot.
    """
    path = f"{folder}/{name.rpartition('/')[2]}"
    if path not in [one.path for one in list_published(filesystem, folder)]:
        raise JobError(
            f"there is no environment {name} in {folder}", remedy="`nodewise env list` shows those there are"
        )
    filesystem.delete(path)
    return path


def _open_to_all(filesystem: FileSystem, folder: str) -> None:
    """Make the folders so that YARN may share what is in them; JobError when one is there and lets not everyone in."""
    pieces = folder.strip("/").split("/")
    for count in range(1, len(pieces) + 1):
        parent = "/" + "/".join(pieces[:count])
        if not filesystem.exists(parent):
            filesystem.make_folder(parent, mode=0o755)
        elif filesystem.mode(parent) & 0o005 != 0o005:
            raise JobError(
                f"{parent} in HDFS is closed to others, and nodes share only what everyone may read",
                remedy="open it (mode 755), or name another folder",
            )


def _write(filesystem: FileSystem, path: str, found: Contents, progress: Callable[[int, int], None]) -> None:
    """Write beside the final name, so that nobody ever sees half an archive."""
    draft = f"{path}.{secrets.token_hex(4)}"
    try:
        with (
            filesystem.open_writer(draft, block_bytes=SPREAD_BYTES) as write,
            io.BufferedWriter(_Pieces(write), _PIECE_BYTES) as sink,
        ):
            pack(found, sink, progress)
        filesystem.rename(draft, path)
    except BaseException as error:
        with suppress(HadoopError):
            filesystem.delete(draft)
        # Somebody else published the same one meanwhile.
        if not (isinstance(error, HadoopError) and filesystem.exists(path)):
            raise


class _Pieces(io.RawIOBase):
    """A stream that passes on what is written to it."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write

    def writable(self) -> bool:
        """It is for nothing else."""
        return True

    def write(self, piece: object) -> int:
        """Pass on one piece."""
        content = bytes(memoryview(piece))  # type: ignore[arg-type]
        self._write(content)
        return len(content)
