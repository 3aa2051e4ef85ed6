"""What a task's program finds: its folder with the user's files, and its environment."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from jobs.errors import JobError
from jobs.kinds.task import checkpoint, input_data, service_access
from jobs.kinds.task.settings import ENVIRONMENT, FILES, TaskSettings
from jobs.kinds.task.unpacking import unpack

NAME, OUTPUT = "work", ".output"
KEPT = (checkpoint.FOLDER, input_data.FOLDER, service_access.CA)
OF_THE_RUNNER = (
    "CLASSPATH",
    "HADOOP_TOKEN_FILE_LOCATION",
    "OLDPWD",
    "PWD",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "SHLVL",
    "_",
)
"""Variables of this process that are not meant for the program; others are the node's, such as PATH."""

PATH_IN_ROOT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are that an environment's own root has, unless it names other folders."""


def make(settings: TaskSettings, container: Path) -> Path:
    """A fresh folder in the container's, with the user's files; JobError when they cannot be unpacked."""
    folder = container / NAME
    folder.mkdir()
    _fill(settings, container)
    return folder


def renew(settings: TaskSettings, container: Path) -> None:
    """The same for another start in the same container: what the last one left is gone, all but data and checkpoint."""
    folder = container / NAME
    for one in folder.iterdir():
        if one.name in KEPT:
            continue
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        else:
            one.unlink()
    _fill(settings, container)


def _fill(settings: TaskSettings, container: Path) -> None:
    folder = container / NAME
    if settings.has_files:
        try:
            unpack(container / FILES, folder)
        except tarfile.TarError as error:
            raise JobError(f"the files of the task cannot be unpacked: {error}", remedy="send them again") from error
    (folder / OUTPUT).mkdir(exist_ok=True)


def environment(
    settings: TaskSettings,
    folder: Path,
    node_name: str,
    attempt: int,
    shows_machine: bool,
    of_service: Mapping[str, str],
) -> dict[str, str]:
    """The program's environment variables; those that tell it about itself are as they are, whatever was asked for.

    Where it does not see the machine's files, it has none of the machine's variables, and its home is its folder. One
    that tracks its runs elsewhere has none `of_service`, whose token is for this service alone.
    """
    has_root = "/" in settings.parts
    of_node: Mapping[str, str] = {"HOME": str(folder), **({"PATH": PATH_IN_ROOT} if has_root else {})}
    if shows_machine and not has_root:
        of_node = {name: value for name, value in os.environ.items() if name not in OF_THE_RUNNER}
    if settings.has_environment:
        of_node = {**of_node, **_with_environment(folder.parent / ENVIRONMENT, of_node.get("PATH", os.defpath))}
    for at in (one for one in settings.parts if one != "/"):  # a root has its programs where others have theirs
        of_node = {**of_node, **_with_environment(Path(at), of_node.get("PATH", os.defpath))}
    return {
        **of_node,
        "PYTHONUNBUFFERED": "1",
        **({} if service_access.URI in settings.variables else of_service),
        **settings.variables,
        "NODE_NAME": node_name,
        "TASK_ID": settings.task_id,
        "ATTEMPT": str(attempt),
        "CHECKPOINT": str(folder / checkpoint.FOLDER),
        "DATA": str(folder / input_data.FOLDER),
        "OUTPUT": str(folder / OUTPUT),
    }


def _with_environment(place: Path, path: str) -> dict[str, str]:
    """What makes `python` and `python3` those of an environment, as its activation would."""
    return {"PATH": f"{place / 'bin'}:{path}", "VIRTUAL_ENV": str(place)}
